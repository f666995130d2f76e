"""The Python calls: `totune.compare`, `train`, `load`, `merge` and `extract_features`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from totune import export
from totune.errors import ConfigError, RunError
from totune.export import Merged, Predictor, load_model
from totune.extraction import Extracted, ExtractionSettings, extract
from totune.outputs import output_path
from totune.progress import Progress
from totune.registry import build
from totune.runs.config import addressed
from totune.runs.execute import (
    Runs,
    check_plans,
    execute,
    leave_out_unfit,
    tokenize_splits,
)
from totune.runs.executors.choice import executor_of
from totune.runs.prepare import configurations, prepare
from totune.runs.records import RunRecord
from totune.runs.settings import Settings
from totune.runs.store import Store, is_study
from totune.study.best import save_best, save_run
from totune.study.describe import describe
from totune.study.steps import (
    check_folder,
    check_search_storage,
    open_model,
    open_study,
    run_race,
    say_positive,
    search_options,
    track,
)
from totune.study.study import Study, summary_rows
from totune.tracking import check_trackers


def compare(
    data: str | Path | Mapping[str, str | Path],
    *,
    out: str | Path = "study",
    progress: Progress | None = None,
    command: str = "",
    **settings: Any,
) -> Study:
    """Trains every strategy over every seed and says which is worth it.

    Args:
        data: a file, a folder with train/dev/test files, `hub:NAME`, or `example:NAME`.
        out: the study's folder. What is finished there already is not run again.
        progress: told of everything that goes on; silent by default.
        command: the command line, recorded in the study.
        **settings: see `totune.runs.settings.Settings`.

    Returns:
        The study, with its report written and the recommended model saved in `best/`.

    Raises:
        ConfigError: with every fault of the settings, before anything is loaded.
        DataError: if the data cannot be used.
        ModelError: if the encoder cannot be had.
        RunError: if no run finished.
    """
    progress = progress or Progress()
    chosen = build(Settings, settings, "compare")
    chosen.check()
    executor = executor_of(chosen)
    check_search_storage(chosen)
    check_trackers(chosen.track)
    store = open_study(out, chosen.model)
    context = prepare(data, chosen, progress)
    say_positive(context)
    columns = context.dataset.columns
    members = chosen.check(columns.task, pairs=columns.pair is not None)
    runs: Runs = configurations(members, chosen.seed_list, context)
    left_out: list[str] = []
    if chosen.strategies is None:
        named = addressed(members, chosen.options)
        runs, left_out = leave_out_unfit(runs, context, named)
    else:
        check_plans(runs, context)
    tokenize_splits(runs, context)
    info = describe(runs, chosen, context, command)
    check_folder(store, info)
    if context.devices.is_main and not is_study(store.folder):
        store.save_info(info)  # marks the folder, before a search writes to it
    track(chosen, store.folder, context)
    if chosen.searches:
        runs = search_options(members, runs, chosen, context, store, executor)
        info = describe(runs, chosen, context, command)
    info.data["warnings"] += left_out
    if context.devices.is_main:
        store.save_info(info)

    def show(records: list[RunRecord]) -> None:
        context.progress.table(summary_rows(records, info))

    keep_all = chosen.keep_weights == "all"
    if chosen.race:
        records = run_race(runs, chosen, context, store, show, executor)
    else:
        records = execute(runs, context, store, chosen.budget, show, keep_all, executor)
    if not records:
        raise RunError(f"The budget of {chosen.budget:.0f} s left no time for any run.")
    if all(record.status == "failed" for record in records):
        raise RunError(f"No run finished. The first one's message: {records[0].error}")
    context.devices.wait()  # all read what the main process wrote
    study = Study(store.folder)
    save_best(study, runs, context, store, executor)
    if context.devices.is_main:
        study.report()
    context.devices.wait()
    return study


def train(
    data: str | Path | Mapping[str, str | Path],
    strategy: str | Mapping[str, Any] = "fine-tuning",
    *,
    out: str | Path = "model",
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Predictor:
    """Trains one strategy with one seed and saves the model.

    Args:
        data: as for `compare`.
        strategy: a strategy or baseline.
        out: the model's folder; an interrupted run continues from its last epoch.
        seed: for initialisation and data order.
        progress: told of everything that goes on.
        **settings: see `totune.runs.settings.Settings`.

    Returns:
        The trained model.

    Raises:
        TotuneError: as `compare`; `RunError` if the run failed.
    """
    progress = progress or Progress()
    chosen = build(Settings, {**settings, "strategies": [strategy], "seeds": [seed]}, "train")
    members = chosen.check()
    if chosen.searches:
        raise ConfigError("train takes options as they are; compare searches them.")
    check_trackers(chosen.track)
    folder = open_model(out, chosen.model)
    store = Store(folder / "training")
    context = prepare(data, chosen, progress)
    say_positive(context)
    if context.devices.is_main:
        (store.folder / "runs").mkdir(parents=True, exist_ok=True)  # marks the folder
    track(chosen, folder, context)
    runs = configurations(members, [seed], context)
    tokenize_splits(runs, context)
    check_plans(runs, context)
    record = execute(runs, context, store)[0]
    if record.status == "failed":
        raise RunError(f"The run failed: {record.error}")
    config, member = runs[0]
    if context.devices.is_main:
        save_run(folder, config, member, record, context, store)
    context.devices.wait()
    return load_model(folder)


def load(folder: str | Path, model: str | None = None) -> Predictor:
    """A trained model from the folder of `train`, or from a study's `best/`.

    Args:
        folder: the model's.
        model: for adapters or LoRA, where their encoder is, if it was moved.

    Raises:
        ModelError: if the folder or the encoder is missing or damaged, or the encoder is not the
            one that the model was trained with.
    """
    return load_model(Path(folder), model)


def merge(folder: str | Path, out: str | Path, model: str | None = None) -> Merged:
    """Makes a model of adapters or LoRA whole: a folder that needs no encoder from elsewhere.

    Args:
        folder: of such a model.
        out: a folder that is new or empty.
        model: where the encoder is, if it was moved.

    Returns:
        Whether the modules could be merged into the encoder's weights, and if not, why.

    Raises:
        ConfigError: if `out` holds something.
        ModelError: as `load`, and if there is nothing to merge.
    """
    return export.merge(Path(folder), output_path(out), model)


def extract_features(
    data: str | Path,
    *,
    out: str | Path,
    progress: Progress | None = None,
    **settings: Any,
) -> Extracted:
    """Computes a frozen encoder's vectors for any number of rows, into a folder of shards.

        for shard in totune.extract_features("texts.csv", out="vectors"):
            shard.first, shard.vectors      # the first row's number; [rows, H], mapped

    `totune.extraction.open_features("vectors")` opens them again.

    Args:
        data: a file, a folder of files, `hub:NAME`, or `example:NAME`; no labels are needed.
        out: the folder. Shards that are finished there are not computed again.
        progress: told of everything that goes on.
        **settings: see `totune.extraction.ExtractionSettings`.

    Raises:
        TotuneError: as `totune.extraction.extract`.
    """
    chosen = build(ExtractionSettings, settings, "extract_features")
    return extract(data, chosen, output_path(out), progress or Progress())
