"""What the runs of a study share, from its settings: data, task, encoder, pieces, cache."""

from typing import Any

from totune.data.sources import load_dataset
from totune.encoders.loading import load_encoder
from totune.errors import ConfigError
from totune.features import FeatureCache
from totune.machine import choose_precision, keep_freed_memory
from totune.progress import Progress
from totune.registry import did_you_mean
from totune.runs.context import Context
from totune.runs.settings import Settings
from totune.strategies.defaults import batch_size
from totune.tasks.base import TASKS, Task
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings


def prepare(
    data: Any, settings: Settings, progress: Progress, reads_encoder: bool = True
) -> Context:
    """Loads everything that the runs of a study share.

    Args:
        data: as for `totune.compare`.
        settings: of the study.
        progress: receives notes and warnings.
        reads_encoder: whether any run reads the encoder; if none does, it is not loaded, and
            whether it could be is not found out.

    Raises:
        TotuneError: if the data, the metric or the encoder cannot be used.
    """
    keep_freed_memory()
    devices = Devices()
    progress = progress if devices.is_main else Progress()
    dataset = load_dataset(
        data,
        text=settings.text,
        pair=settings.pair,
        label=settings.label,
        task=settings.task,
        tag_scheme=settings.tag_scheme,
        encoding=settings.encoding,
        fraction=settings.fraction,
        split_seed=settings.split_seed,
        where=settings.where,
        label_map=settings.label_map,
    )
    for note in dataset.notes:
        progress.say(note)
    for warning in dataset.warnings:
        progress.warn(warning)
    task = TASKS.get(dataset.columns.task).from_examples(dataset.train, dataset.classes)
    if settings.positive_label is not None:
        task = task.with_positive(settings.positive_label)
    metric = check_metric(settings.metric, task)
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
    )


def check_metric(name: str | None, task: Task) -> str:
    """The metric that decides: `name`, or the task's first.

    Raises:
        ConfigError: if the task has no such metric.
    """
    if name is None:
        return task.metrics[0]
    if name not in task.metrics:
        hint = did_you_mean(name, task.metrics)
        raise ConfigError(f"metric {name!r} is none of the task {task.name}. {hint}")
    return name
