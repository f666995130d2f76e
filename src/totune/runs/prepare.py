"""What the runs of a study share, from its settings: data, task, encoder, pieces, cache."""

from collections import Counter
from dataclasses import replace
from typing import Any

from totune.data.examples import Dataset, classes_of
from totune.data.sources import load_dataset
from totune.encoders.loading import load_encoder
from totune.errors import ConfigError
from totune.features import FeatureCache
from totune.machine import choose_precision, keep_freed_memory
from totune.metrics import METRICS
from totune.progress import Progress
from totune.runs.context import Context
from totune.runs.settings import Settings
from totune.strategies.defaults import batch_size
from totune.tasks.base import TASKS, Task
from totune.tasks.classification import Classification
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings

SKEWED = 0.8  # share of a class in train above which accuracy hides what becomes of the others
FEW_TO_TUNE = 20  # dev rows of a class; with fewer a threshold follows single rows


def prepare(
    data: Any,
    settings: Settings,
    progress: Progress,
    reads_encoder: bool = True,
    may_fold: bool = False,
) -> Context:
    """Loads everything that the runs of a study share.

    Args:
        data: as for `totune.compare`.
        settings: of the study.
        progress: receives notes and warnings.
        reads_encoder: whether any run reads the encoder; if none does, it is not loaded, and
            whether it could be is not found out.
        may_fold: whether few rows are cross-validated where the settings leave that open.

    Raises:
        TotuneError: if the data, the metric or the encoder cannot be used.
    """
    keep_freed_memory()
    devices = Devices()
    progress = progress if devices.is_main else Progress()
    dataset = load_dataset(settings.source(data), **settings.reading(may_fold))
    for note in dataset.notes:
        progress.say(note)
    for warning in dataset.warnings:
        progress.warn(warning)
    task, notes = choose_task(dataset, settings)
    for note in notes:
        progress.say(note)
    dataset = replace(dataset, notes=(*dataset.notes, *notes))
    metric = settings.metric or task.metrics[0]
    if ":" in metric:  # a person's function: what is wrong with it is found before training
        targets = task.targets((dataset.dev if len(dataset.dev) else dataset.test).labels or ())
        METRICS[metric](targets, targets)
    if settings.tune_threshold:
        _check_thresholds(task, metric, dataset, progress)
    pretrained, max_length = None, settings.max_length
    if reads_encoder:
        pretrained = load_encoder(settings.model)
        progress.say(pretrained.note)
        pretrained.encoder.to(devices.device)
        max_length = min(max_length, pretrained.encoder.max_length)
    rows_per_step = settings.per_device_train_batch_size or batch_size(len(dataset.train))
    return Context(
        dataset=dataset,
        task=task,
        pretrained=pretrained,
        cache=FeatureCache(settings.cache_dir, settings.cache_budget, progress),
        settings=TrainingSettings(
            metric,
            rows_per_step * devices.world,
            settings.max_grad_norm,
            settings.tokens_per_batch,
            settings.bias_correction,
        ),
        precision=choose_precision(settings.precision, devices.device),
        max_length=max_length,
        devices=devices,
        progress=progress,
        split_seed=settings.split_seed,
        batch_by_rule=settings.per_device_train_batch_size is None,
        tune_threshold=settings.tune_threshold,
        folds=dataset.folds,
    )


def choose_task(dataset: Dataset, settings: Settings) -> tuple[Task, list[str]]:
    """The label space of a dataset with its options and metric, and what was chosen by a rule.

    Where one class has more than `SKEWED` of the train rows and nobody has named a metric, classes
    count alike: in the metric, balanced accuracy, and, unless the option was set, in the loss.

    Raises:
        ConfigError: if the task has no such option, metric or positive class.
    """
    every = dataset.train if dataset.folds is None else dataset.folds.rows
    task = TASKS.get(dataset.columns.task).from_examples(every, dataset.classes)
    if settings.positive_label is not None:
        task = task.with_positive(settings.positive_label)
    options, metric, notes = settings.task_options, settings.metric, list[str]()
    label, count = Counter(every.labels).most_common(1)[0]
    share = count / len(every)
    if metric is None and share > SKEWED and isinstance(task, Classification):
        metric = "balanced-accuracy"
        options = {"class_weight": "balanced", **options}
        notes.append(_skew_note(label, share, options["class_weight"] is not None))
    task = task.with_options(options, every)
    return (task if metric is None else task.with_metric(metric)), notes


def _skew_note(label: object, share: float, weighted: bool) -> str:
    """Why classes count alike."""
    loss = (
        ", and the loss gives every class the same weight (the option `task.class_weight=null` "
        "gives every row the same)"
    )
    return (
        f"{share:.0%} of the train rows are of the class {label!r}, so that an accuracy of "
        f"{100 * share:.0f} of 100 takes no model: the metric is balanced accuracy (the mean over "
        "the classes of the share of their rows that is found; `metric` names another)"
        f"{loss if weighted else ''}."
    )


def _check_thresholds(task: Task, metric: str, dataset: Dataset, progress: Progress) -> None:
    """Makes sure that thresholds can be tuned, and says so where dev is small for it.

    Raises:
        ConfigError: if they cannot.
    """
    task.check_thresholds(metric)
    if not len(dataset.dev):
        raise ConfigError(
            "tune_threshold needs dev rows, and with `evaluate_on='dev'` these are the test. "
            "Leave out one of them."
        )
    dev, train = dataset.dev, dataset.train
    found = Counter(str(name) for label in dev.labels or () for name in classes_of(label))
    classes = sorted({str(name) for label in train.labels or () for name in classes_of(label)})
    count, label = min((found[label], label) for label in classes)
    if count < FEW_TO_TUNE:
        progress.warn(
            f"The threshold is tuned on {len(dev):,} dev rows, {count:,} of them {label!r}: with "
            f"fewer than {FEW_TO_TUNE} rows of a class it is mostly chance. Give more dev rows, or "
            "leave out `tune_threshold`."
        )
