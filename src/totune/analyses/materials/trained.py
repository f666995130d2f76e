"""Trained models with rows to score them on, for analyses that take a model apart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from totune.analyses.materials.opening import Opened
from totune.data.examples import Columns, Dataset, SplitName
from totune.data.sources import load_dataset
from totune.errors import ConfigError, ModelError
from totune.export.adapters import open_adapter, open_encoder
from totune.export.files import read_description, refusing_damage
from totune.inputs.encoded import EncodingOptions, frame
from totune.inputs.tokenizer import Tokenizer
from totune.machine import choose_precision
from totune.model import Model
from totune.progress import Progress
from totune.registry import build
from totune.runs.context import Context
from totune.runs.prepare import check_metric
from totune.runs.records import RunRecord
from totune.runs.reopen import FinishedRun, finished_runs, reopen
from totune.runs.run import encoding_options_of
from totune.strategies.adapters import BottleneckAdapters
from totune.tasks.base import Task
from totune.tasks.tagging import Tagging
from totune.training.devices import Devices
from totune.training.inputs import Split


@dataclass(frozen=True)
class Trained:
    """A trained model, in eval mode.

    Attributes:
        label: its strategy's.
        seed: of its run.
        model: on the device that it computes on.
        metric: that decides.
        split: from the name of a split to its tokenised rows with their targets.
    """

    label: str
    seed: int
    model: Model
    metric: str
    split: Callable[[SplitName], Split]


@dataclass(frozen=True)
class TrainedModels:
    """Models trained on one dataset.

    Attributes:
        models: can be gone through once, one in memory at a time.
        about: data, encoder and precision, as findings record them.
        records: every run of the study that they are from.
    """

    models: Iterable[Trained]
    about: Mapping[str, Any]
    records: Sequence[RunRecord] = field(default=())


def without_adapters(what: str) -> ModelError:
    """The error for a model that has no bottleneck adapters."""
    return ModelError(
        f"{what} has no bottleneck adapters that could be removed; what PEFT inserts (LoRA and the "
        "like) is not removed layer by layer. Choose a model of the strategy adapters, or train "
        "one: totune train DATA --strategy adapters."
    )


def open_folder(
    folder: Path,
    data: str | Path,
    *,
    model: str | None = None,
    encoding: str | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
) -> TrainedModels:
    """The model with adapters of one folder, in the precision that it was trained in.

    Args:
        folder: of `totune.train`, or a study's `best/`.
        data: what it was trained on, or data of the same columns; splits that the data has not are
            drawn as in training.
        model: where the encoder is, if it was moved.
        encoding: of text files; UTF-8 if None.
        metric: that decides; the task's first if None.
        progress: told of what is remarkable about the data.

    Raises:
        ModelError: if the folder holds no such model, or its encoder cannot be had.
        DataError: if the data cannot be used.
        ConfigError: if the task has no such metric.
    """
    progress = progress or Progress()
    task, about = read_description(folder)
    chosen = check_metric(metric, task)
    if about.get("kind") != "adapter":
        raise without_adapters(f"The model in {folder}")
    loaded = open_encoder(folder, about, model)
    with refusing_damage(folder):
        precision = choose_precision(about["precision"])
        columns = Columns(**about["columns"])
        encoding_options = build(EncodingOptions, about.get("framing", {}), "encoding_options")
        max_length, seed = int(about["max_length"]), int(about["seed"])
        label, split_seed = str(about["strategy"]), int(about["split_seed"])
    dataset = _read(data, columns, task, split_seed, encoding)
    _tell(dataset, progress)
    opened = open_adapter(folder, task, about, loaded, precision).to(Devices().device)
    splits = _splits(dataset, task, loaded.tokenizer, max_length, encoding_options)
    trained = Trained(label, seed, opened, chosen, splits)
    told = {
        "data": dataset.name,
        "digest": dataset.digest(),
        "rows": {name: len(split) for name, split in dataset.splits().items()},
        "columns": asdict(dataset.columns),
        "metric": chosen,
        "model": loaded.name,
        "fingerprint": about["fingerprint"],
        "precision": precision,
    }
    return TrainedModels((trained,), told)


def _read(
    data: str | Path, columns: Columns, task: Task, split_seed: int, encoding: str | None
) -> Dataset:
    """The data by the columns, and in the scheme of tags, that the model was trained on."""
    scheme = task.scheme if isinstance(task, Tagging) else None
    return load_dataset(
        data,
        text=columns.text,
        pair=columns.pair,
        label=columns.label,
        task=columns.task,
        encoding=encoding,
        tag_scheme=scheme or "iob2",
        split_seed=split_seed,
    )


def _tell(dataset: Dataset, progress: Progress) -> None:
    for note in dataset.notes:
        progress.say(note)
    for warning in dataset.warnings:
        progress.warn(warning)


def _splits(
    dataset: Dataset,
    task: Task,
    tokenizer: Tokenizer,
    max_length: int,
    encoding_options: EncodingOptions,
) -> Callable[[SplitName], Split]:
    def split(name: SplitName) -> Split:
        examples = dataset.splits()[name]
        units = frame(examples, tokenizer, max_length, encoding_options)
        return Split.labelled(name, units, task, examples.labels or ())

    return split


def open_study(
    folder: Path,
    data: str | Path,
    *,
    strategies: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> TrainedModels:
    """Every model with bottleneck adapters that a study has kept.

    Args:
        folder: the study's.
        data: what it was made of.
        strategies: which; all that insert bottleneck adapters if empty.
        progress: told of everything that goes on.
        **settings: that differ now, such as where the encoder lies.

    Raises:
        ConfigError: if the folder holds no study of this data, or none of its models is there.
        TotuneError: as `totune.compare`.
    """
    progress = progress or Progress()
    context, info, records = reopen(folder, data, settings, progress)
    with_adapters = [
        record.strategy
        for record in records
        if record.config["strategy"]["name"] == BottleneckAdapters.name
    ]
    labels = strategies or list(dict.fromkeys(with_adapters))
    if not labels:
        raise without_adapters(f"No model of {folder} (strategies {', '.join(info.strategies)})")
    runs = finished_runs(folder, records, labels, progress)
    if not runs:
        raise ConfigError(
            f"{folder} has not kept the weights of any run of {', '.join(labels)}. Run the study "
            "again with `keep_weights='all'`."
        )
    models = (_of_run(run, context) for run in runs)
    return TrainedModels(models, Opened(context).about, records)


def _of_run(run: FinishedRun, context: Context) -> Trained:
    encoding_options = encoding_options_of(run.config, run.strategy, context)
    return Trained(
        run.record.strategy,
        run.record.seed,
        run.model(context).eval().to(context.devices.device),
        context.settings.metric,
        lambda name: context.split(name, encoding_options),
    )
