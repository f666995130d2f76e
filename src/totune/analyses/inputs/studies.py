"""From a dataset, a study or a model's folder to the models that an analysis looks into."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from totune.analyses.inputs.hidden_states import HiddenStates
from totune.data.examples import Columns, Dataset, SplitName
from totune.errors import ConfigError, ModelError
from totune.progress import Progress
from totune.registry import build

if TYPE_CHECKING:
    from totune.encoders.loading import Loaded
    from totune.model import Model
    from totune.runs.context import Context
    from totune.runs.records import RunRecord
    from totune.runs.reopen import FinishedRun
    from totune.tasks.base import Task
    from totune.training.inputs import Split


@dataclass(frozen=True)
class AnalysisInputs:
    """A dataset with its encoder, and the runs of a study of it, if one was named.

    Attributes:
        context: data, task, encoder, cache.
        records: every run of the study.
        study: the study's folder.
        strategies: labels of the strategies whose models are looked into; all if empty.
    """

    context: "Context"
    records: "Sequence[RunRecord]" = ()
    study: Path | None = None
    strategies: Sequence[str] = ()

    @cached_property
    def runs(self) -> "Sequence[FinishedRun]":
        """The runs whose trained weights were kept; warns of the others.

        Raises:
            ConfigError: if the study has no such strategy.
        """
        if self.study is None:
            return ()
        from totune.runs.reopen import finished_runs

        return finished_runs(self.study, self.records, self.strategies, self.context.progress)

    @property
    def states(self) -> HiddenStates:
        """The hidden states of the encoder, and of those that the runs adapted."""
        return HiddenStates(self.context, self.runs)

    @property
    def about(self) -> dict[str, Any]:
        """Data, encoder and precision, as findings record them."""
        context = self.context
        fingerprint = context.loaded.encoder.fingerprint()
        return _about(
            context.dataset,
            context.settings.metric,
            context.loaded,
            fingerprint,
            context.precision,
        )


def _about(
    data: Dataset, metric: str, loaded: "Loaded", fingerprint: str, precision: str
) -> dict[str, Any]:
    return {
        "data": data.name,
        "digest": data.digest(),
        "rows": {name: len(split) for name, split in data.splits().items()},
        "columns": asdict(data.columns),
        "metric": metric,
        "model": loaded.name,
        "fingerprint": fingerprint,
        "precision": precision,
    }


def open_data(
    data: str | Path,
    *,
    study: Path | None = None,
    strategies: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> AnalysisInputs:
    """Reads a dataset and its encoder; with a study, the models that it trained too.

    Args:
        data: as for `totune.compare`.
        study: a study's folder; its settings hold unless named in `settings`.
        strategies: labels of the study's strategies whose models are looked into; all if empty.
        progress: receives notes and warnings.
        **settings: see `totune.runs.settings.Settings`.

    Raises:
        TotuneError: as `totune.compare`; `ConfigError` if the study is of other data or of another
            encoder.
    """
    from totune.runs.prepare import prepare
    from totune.runs.reopen import reopen
    from totune.runs.settings import Settings

    progress = progress or Progress()
    if study is None:
        return AnalysisInputs(prepare(data, build(Settings, settings, "analyze"), progress))
    context, _, records = reopen(study, data, settings, progress)
    return AnalysisInputs(context, records, study, strategies)


class AblationModel(NamedTuple):
    """A trained model in eval mode, with rows to score it on.

    Attributes:
        label: label of its strategy.
        seed: seed of its run.
        model: the model, on the device that it computes on.
        metric: the metric that decides.
        split: from the name of a split to its tokenised rows with their targets.
    """

    label: str
    seed: int
    model: "Model"
    metric: str
    split: "Callable[[SplitName], Split]"


class AblationModels(NamedTuple):
    """Models trained on one dataset.

    Attributes:
        models: can be gone through once, one in memory at a time.
        about: data, encoder and precision, as findings record them.
        records: every run of the study that they come from.
    """

    models: Iterable[AblationModel]
    about: Mapping[str, Any]
    records: "Sequence[RunRecord]" = ()


def without_adapters(subject: str) -> ModelError:
    """The error for a model that has no bottleneck adapters."""
    return ModelError(
        f"{subject} has no bottleneck adapters that could be removed; what PEFT inserts (LoRA and "
        "the like) is not removed layer by layer. Choose or train a model of the strategy adapters."
    )


def open_folder(
    folder: Path,
    data: str | Path,
    *,
    model: str | None = None,
    encoding: str | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
) -> AblationModels:
    """The model with adapters of one folder, in the precision that it was trained in.

    Args:
        folder: of `totune.train`, or a study's `best/`.
        data: what it was trained on, or data of the same columns; splits that the data lacks are
            drawn as in training.
        model: where the encoder is, if it was moved.
        encoding: of text files; UTF-8 if None.
        metric: the metric that decides; the task's first if None.
        progress: receives notes and warnings about the data.

    Raises:
        ModelError: if the folder holds no such model, or its encoder cannot be loaded.
        DataError: if the data cannot be used.
        ConfigError: if the task has no such metric.
    """
    from totune.export.adapters import open_adapter, open_encoder
    from totune.export.files import read_description, refusing_damage
    from totune.inputs.encoded import EncodingOptions, frame
    from totune.machine import choose_precision
    from totune.training.devices import Devices
    from totune.training.inputs import Split

    task, about = read_description(folder)
    task = task if metric is None else task.with_metric(metric)
    chosen = metric or task.metrics[0]
    if about.get("kind") != "adapter":
        raise without_adapters(f"The model in {folder}")
    loaded = open_encoder(folder, about, model)
    with refusing_damage(folder):
        precision = choose_precision(about["precision"])
        columns = Columns(**about["columns"])
        options = build(EncodingOptions, about.get("framing", {}), "encoding_options")
        max_length, seed = int(about["max_length"]), int(about["seed"])
        label, split_seed = str(about["strategy"]), int(about["split_seed"])
    dataset = _read_as_trained(data, columns, task, split_seed, encoding, progress or Progress())
    opened = open_adapter(folder, task, about, loaded, precision).to(Devices().device)

    def split(name: SplitName) -> Split:
        examples = dataset.splits()[name]
        units = frame(examples, loaded.tokenizer, max_length, options)
        return Split.labelled(name, units, task, examples.labels or ())

    found = _about(dataset, chosen, loaded, about["fingerprint"], precision)
    return AblationModels((AblationModel(label, seed, opened, chosen, split),), found)


def _read_as_trained(
    data: str | Path,
    columns: Columns,
    task: "Task",
    split_seed: int,
    encoding: str | None,
    progress: Progress,
) -> Dataset:
    """The data by the columns, and in the scheme of tags, that the model was trained on."""
    from totune.data.sources import load_dataset

    dataset = load_dataset(
        data,
        text=columns.text,
        pair=columns.pair,
        label=columns.label,
        task=columns.task,
        label_separator=columns.label_separator,
        encoding=encoding,
        tag_scheme=getattr(task, "scheme", None) or "iob2",
        split_seed=split_seed,
    )
    for note in dataset.notes:
        progress.say(note)
    for warning in dataset.warnings:
        progress.warn(warning)
    return dataset


def open_study(
    folder: Path,
    data: str | Path,
    *,
    strategies: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> AblationModels:
    """Every model with bottleneck adapters that a study has kept.

    Args:
        folder: the study's.
        data: the data it was made of.
        strategies: labels of strategies; all that insert bottleneck adapters if empty.
        progress: receives notes and warnings.
        **settings: settings that differ now, such as where the encoder lies.

    Raises:
        ConfigError: if the folder holds no study of this data, or none of its models is there.
        TotuneError: as `totune.compare`.
    """
    from totune.runs.reopen import reopen
    from totune.strategies.adapters import BottleneckAdapters

    context, info, records = reopen(folder, data, settings, progress or Progress())
    with_adapters = [
        record.strategy
        for record in records
        if record.config["strategy"]["name"] == BottleneckAdapters.name
    ]
    labels = strategies or list(dict.fromkeys(with_adapters))
    if not labels:
        raise without_adapters(f"No model of {folder} (strategies {', '.join(info.strategies)})")
    opened = AnalysisInputs(context, records, folder, labels)
    if not opened.runs:
        raise ConfigError(
            f"{folder} has not kept the weights of any run of {', '.join(labels)}. Run the study "
            "again with keep_weights=all."
        )
    models = (_of_run(run, context) for run in opened.runs)
    return AblationModels(models, opened.about, records)


def _of_run(finished: "FinishedRun", context: "Context") -> AblationModel:
    options = finished.run.spec(context).encoding_options
    return AblationModel(
        finished.record.strategy,
        finished.record.seed,
        finished.model(context).eval().to(context.devices.device),
        context.settings.metric,
        lambda name: context.split(name, options),
    )
