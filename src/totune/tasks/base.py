"""A task: the label space, the loss, the metrics and the way back from outputs to labels."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from totune.data.examples import Examples, Label
from totune.registry import Registry

UNKNOWN = -100  # target of a label that training never saw: no loss, always a wrong prediction


class Task(ABC):
    """What is predicted; a frozen dataclass whose fields are the label space.

    Attributes:
        outputs: C, how many numbers the head gives per example.
        metrics: names of the reported metrics, the main one first.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]: ...

    @classmethod
    @abstractmethod
    def from_examples(cls, train: Examples) -> "Task":
        """The label space of a training split."""

    @abstractmethod
    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        """Labels as numbers, [N]."""

    def known(self, targets: np.ndarray) -> np.ndarray:
        """Which targets [N] can be learnt from and scored by the loss, [N] bool."""
        return np.ones(len(targets), dtype=bool)

    @abstractmethod
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each example: outputs [B, C], targets [B] -> [B]."""

    @abstractmethod
    def predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs [N, C] as predictions on the scale of `targets`, [N]."""

    @abstractmethod
    def scores(self, outputs: np.ndarray) -> np.ndarray | None:
        """Class probabilities [N, C], or None where there are no classes."""

    @abstractmethod
    def evaluate(self, targets: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        """Every metric of the task by name."""

    @abstractmethod
    def decode(self, predictions: np.ndarray) -> list[Label]:
        """Predictions as labels."""

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
