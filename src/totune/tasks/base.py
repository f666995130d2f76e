"""A task: the label space, the loss, the metrics and the way back from outputs to labels.

Shapes: N rows, C outputs, P predicted positions: one per row, or one per word where words are
tagged; W words of the longest row. What is scored is kept by rows, [N] or [N, W] (of several labels
per row [N, C + 1]); what a head gives and a loss compares is flat, [P, C] and [P] (or [P, C]), in
the order of rows and words.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from totune.data.delimited import NUMBER
from totune.data.examples import Examples, Label
from totune.errors import ConfigError
from totune.metrics import load_metric
from totune.registry import Registry, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

UNKNOWN = -100  # target of a label that training never saw: no loss, always a wrong prediction


class Task(ABC):
    """What is predicted; a frozen dataclass whose fields are the label space, and its options.

    Attributes:
        per_word: whether every word of a row has a label of its own.
        options: names of the fields that a person may set, as `task.NAME` in a study's `options`.
        further_metrics: names of metrics that are reported where they are asked for.
        takes_functions: whether a person's own function (`module:function`) can be its metric.
        thresholds: from which probability on a row is of a class, where that was tuned.
        outputs: C, how many numbers the head gives per position.
        metrics: names of the reported metrics, the main one first.
    """

    name: ClassVar[str]
    per_word: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ()
    further_metrics: ClassVar[tuple[str, ...]] = ()
    takes_functions: ClassVar[bool] = False
    thresholds: tuple[float, ...] = ()

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]: ...

    @property
    def positive(self) -> str | None:
        """The class that F1 is of where there are two; otherwise None."""
        return None

    @classmethod
    @abstractmethod
    def from_examples(cls, train: Examples, order: Sequence[str] = ()) -> "Task":
        """The label space of a training split.

        Args:
            train: the split.
            order: the classes as their source orders them; empty where it does not.
        """

    def with_positive(self, label: str) -> "Task":
        """The same label space with F1 being that of the class `label`.

        Raises:
            ConfigError: there are not two classes, or `label` is neither of them.
        """
        raise ConfigError(
            f"positive_label={label!r} names the class that F1 is of where there are two classes; "
            f"the task is {self.name}. Leave it out."
        )

    @property
    def gradient_only(self) -> tuple[str, ...]:
        """The options, as NAME=VALUE, whose loss is minimised by steps alone.

        Without them the optimum of a linear layer is computed (`totune.linear_model`).
        """
        return ()

    def with_options(self, options: Mapping[str, Any], train: Examples) -> "Task":
        """The same label space with these options.

        Args:
            options: values by name.
            train: the training split, which class weights follow from.

        Raises:
            ConfigError: with every name that is no option of the task and every wrong value.
        """
        unknown = [name for name in options if name not in self.options]
        takes = did_you_mean(unknown[0], self.options) if unknown and self.options else ""
        if unknown:
            raise ConfigError(
                [
                    f"the task {self.name} has no option {name!r}. {takes or 'It takes none.'}"
                    for name in unknown
                ]
            )
        return task_from_json({**self.to_json(), **options}) if options else self

    def with_metric(self, name: str) -> "Task":
        """The same task, which reports the metric `name` too.

        Raises:
            ConfigError: if it has no such metric, or a function cannot be imported.
        """
        if name in self.metrics:
            return self
        if name not in self.further_metrics and not (":" in name and self.takes_functions):
            hint = did_you_mean(name, (*self.metrics, *self.further_metrics))
            raise ConfigError(f"metric {name!r} is none of the task {self.name}. {hint}")
        load_metric(name)
        return replace(self, metric=name)  # type: ignore[type-var]

    def check_thresholds(self, metric: str) -> None:
        """Makes sure that thresholds can be tuned for a metric.

        Raises:
            ConfigError: if the task decides without thresholds, or the metric does.
        """
        raise ConfigError(
            f"tune_threshold is for classification with two classes; the task is {self.name}. "
            "Leave it out."
        )

    def tuned(self, targets: np.ndarray, outputs: np.ndarray, metric: str) -> "Task":
        """The same task, deciding by the thresholds that score best on held-out rows.

        Args:
            targets: of these rows, [N].
            outputs: of these rows, [N, C].
            metric: name of the metric.
        """
        self.check_thresholds(metric)
        return self

    def as_saved(self, thresholds: Sequence[float]) -> "Task":
        """The task of a model of its own: with what was tuned, without a person's function.

        Args:
            thresholds: as `tuned` found them for this model; none for the usual ones.
        """
        changes: dict[str, Any] = {"thresholds": tuple(thresholds)} if thresholds else {}
        if ":" in self.metrics[0]:
            changes["metric"] = ""
        return replace(self, **changes)  # type: ignore[type-var]

    def row_weights(self, flat: np.ndarray) -> np.ndarray | None:
        """How much the loss of each of the flat targets [P] counts; None if all count alike."""
        return None

    @abstractmethod
    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        """Labels as numbers that metrics compare, [N] or [N, W]."""

    def flat(self, targets: np.ndarray) -> np.ndarray:
        """Targets as the loss compares them, [P]; `UNKNOWN` where training saw no such label.

        Of several labels per row [P, C].
        """
        return targets

    def known(self, flat: np.ndarray) -> np.ndarray:
        """Which flat targets [P] can be learnt from and scored by the loss, [P] bool."""
        return np.ones(len(flat), dtype=bool)

    @abstractmethod
    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """The loss of each position: outputs [P, C], flat targets [P] -> [P]."""

    def first_outputs(self) -> np.ndarray | None:
        """The outputs [C] that an untrained head is to give whatever it reads; None for zeros."""
        return None

    @abstractmethod
    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Outputs as predictions on the scale of `targets`.

        Args:
            outputs: [P, C].
            counts: how many positions each row has, [N] with sum P.

        Returns:
            [N] or [N, W].
        """

    @abstractmethod
    def scores(self, outputs: np.ndarray) -> np.ndarray | None:
        """Probabilities of classes or labels [N, C], or None where there are none."""

    @abstractmethod
    def evaluate(
        self, targets: np.ndarray, predictions: np.ndarray, scores: np.ndarray | None = None
    ) -> dict[str, float]:
        """Every metric of the task by name; of probabilities where `scores` gives these, [N, C]."""

    def measure(
        self, targets: np.ndarray, outputs: np.ndarray, counts: np.ndarray
    ) -> dict[str, float]:
        """Every metric of the task by name, from outputs [P, C] of rows with `counts` positions."""
        return self.evaluate(targets, self.predictions(outputs, counts), self.scores(outputs))

    def label_scores(self, targets: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        """Support, precision, recall and F1 of each label as "f1:LABEL", where rows have several.

        Read of whole splits beside `evaluate`, and not of every epoch.
        """
        return {}

    @abstractmethod
    def decode(self, predictions: np.ndarray) -> list[Label]:
        """Predictions as labels."""

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        """The stratum of each row [N] in folds of these targets; None where there are none."""
        return targets

    @abstractmethod
    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        """Why these predictions are useless whatever their score, or None."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The label space as plain data; `TASKS.create(name, fields)` builds it again."""


TASKS: Registry[Task] = Registry("task", "totune.tasks")


def task_from_json(data: Mapping[str, Any]) -> Task:
    """The task that `to_json` described."""
    fields = {key: value for key, value in data.items() if key != "name"}
    return TASKS.create(data["name"], fields)


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names of classes in order: numbers by value, anything else as text."""
    ordered = sorted(names)
    return sorted(ordered, key=float) if all(map(NUMBER.fullmatch, ordered)) else ordered
