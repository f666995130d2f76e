"""Everything that is wrong with a recipe's studies, found before anything is trained."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from totune.baselines.base import Baseline
from totune.data.examples import Dataset
from totune.data.sources import load_dataset
from totune.encoders.loading import plan_encoder
from totune.errors import ConfigError, DataError, ModelError
from totune.recipes.planned import PlannedStudy
from totune.registry import build, did_you_mean
from totune.runs.config import Candidate
from totune.runs.model_spec import ModelSpec
from totune.runs.settings import Settings
from totune.strategies.defaults import TrainingFacts
from totune.tasks.base import TASKS, Task


@dataclass(frozen=True)
class CheckedStudy:
    """What a check found of a study.

    Attributes:
        study: what was checked.
        faults: by label of a row, "" for all rows.
        train_rows: rows of its train split; None where the data is absent or cannot be used.
    """

    study: PlannedStudy
    faults: Mapping[str, str]
    train_rows: int | None = None


def check_study(study: PlannedStudy) -> CheckedStudy:
    """Reads the data, and plans every row for it on an encoder without values."""
    try:
        settings = build(Settings, study.compared, "compare")
        settings.candidates()
        if study.lacking:
            return CheckedStudy(study, {})
        assert study.source is not None
        reads = inspect.signature(load_dataset).parameters
        read = {name: value for name, value in vars(settings).items() if name in reads}
        dataset = load_dataset(study.source, **read)
        task = TASKS.get(dataset.columns.task).from_examples(dataset.train, dataset.classes)
        _check_metric(study.settings["metric"], task)
    except (ConfigError, DataError) as error:
        return CheckedStudy(study, {"": str(error)})
    faults = {}
    for candidate in study.candidates:
        try:
            _check_candidate(candidate, settings, dataset, task)
        except (ConfigError, ModelError) as error:
            faults[candidate.label] = str(error)
    return CheckedStudy(study, faults, len(dataset.train))


def _check_metric(name: str, task: Task) -> None:
    if name not in task.metrics:
        hint = did_you_mean(name, task.metrics)
        raise ConfigError(f"metric {name!r} is none of the task {task.name}. {hint}")


def _check_candidate(
    candidate: Candidate, settings: Settings, dataset: Dataset, task: Task
) -> None:
    """Finds out whether a row's strategy, head and encoder can do the task.

    Raises:
        ConfigError: they cannot.
        ModelError: there is no such encoder.
    """
    if candidate.is_baseline:
        baseline = candidate.create()
        assert isinstance(baseline, Baseline)
        if task.name not in baseline.tasks:
            raise ConfigError(
                f"baseline {baseline.name!r} cannot be used for {task.name}; it is for "
                f"{' and '.join(baseline.tasks)}."
            )
        return
    encoder = _planned_encoder(settings.model)
    width = None if encoder.reads_words else encoder.width
    facts = TrainingFacts(len(dataset.train), len(dataset.dev), width, task.name)
    ModelSpec.of_candidate(
        candidate,
        facts,
        task,
        encoder,
        max_length=min(settings.max_length, encoder.max_length),
        has_pairs=dataset.train.pairs is not None,
    ).check()


@cache
def _planned_encoder(model: str) -> Any:
    return plan_encoder(model)[0]
