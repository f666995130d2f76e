"""`totune.train`: one strategy, one seed, one model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from totune.encoders.sources import ALIASES
from totune.errors import ConfigError, RunError
from totune.export import Predictor, check_model_folder, load_model
from totune.outputs import check_input_stays, output_path
from totune.progress import Progress
from totune.registry import build
from totune.runs.callbacks import Callback
from totune.runs.prepare import prepare
from totune.runs.run import configure
from totune.runs.runner import Runner, check_plans, tokenize_splits
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.study.best import save_run
from totune.study.compare import add_callbacks, say_positive
from totune.tracking import check_trackers


def train(
    data: str | Path | Mapping[str, str | Path] | None = None,
    strategy: str | Mapping[str, Any] = "fine-tuning",
    *,
    out: str | Path = "model",
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> Predictor:
    """Trains one strategy with one seed and saves the model.

    Args:
        data: as for `compare`.
        strategy: a strategy or baseline.
        out: the model's folder; an interrupted run continues from its last epoch.
        seed: for initialisation and data order.
        callbacks: called at the beginning, every epoch and the end of the run.
        progress: shows what goes on; silent by default.
        **settings: see `totune.runs.settings.Settings`.

    Returns:
        The trained model.

    Raises:
        TotuneError: as `compare`; `RunError` if the run failed.
    """
    chosen = build(Settings, {**settings, "strategies": [strategy], "seeds": [seed]}, "train")
    candidates = chosen.candidates()
    if (chosen.folds or 1) > 1:
        raise ConfigError("train makes one model of one split; compare cross-validates.")
    if chosen.preset != "standard":
        raise ConfigError(f"preset={chosen.preset!r} is of a study; train makes one model.")
    if chosen.searches:
        raise ConfigError("train takes options as they are; compare searches them.")
    check_trackers(chosen.track)
    folder = open_model(out, chosen.model)
    store = Store(folder / "training")
    reads_encoder = any(candidate.reads_encoder for candidate in candidates)
    context = prepare(data, chosen, progress or Progress(), reads_encoder)
    say_positive(context)
    if context.devices.is_main:
        (store.folder / "runs").mkdir(parents=True, exist_ok=True)  # marks the folder
    add_callbacks(callbacks, chosen.track, folder, context)
    [run] = configure(candidates, [seed], context)
    tokenize_splits([run], context)
    check_plans([run], context)
    [record] = Runner(context, store).execute([run])
    if record.status == "failed":
        raise RunError(f"The run failed: {record.error}")
    if context.devices.is_main:
        save_run(folder, run, record, context, store)
    context.devices.wait()
    return load_model(folder)


def open_model(out: str | Path, encoder: str) -> Path:
    """A trained model's folder, which need not exist yet.

    Args:
        out: as a person named it.
        encoder: that the model is trained from.

    Raises:
        ConfigError: if the folder holds something that is not a model of totune, or the encoder.
    """
    folder = output_path(out)
    if encoder not in ALIASES:
        check_input_stays(encoder, folder)
    check_model_folder(folder)
    return folder
