"""One of several classes per text or pair: cross-entropy, accuracy, F1, Matthews."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from totune.data.examples import Examples, Label
from totune.errors import ConfigError
from totune.metrics import METRICS
from totune.registry import did_you_mean
from totune.tasks.base import TASKS, UNKNOWN, Task, sorted_names

if TYPE_CHECKING:
    from torch import Tensor


@TASKS.register("classification")
@dataclass(frozen=True)
class Classification(Task):
    """Single-label classification.

    Attributes:
        labels: the class names, in the order of their source where it declares one, else sorted
            (numbers by value); with two, the second is the positive class of F1.
    """

    labels: tuple[str, ...]

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("accuracy", "f1", "matthews")

    @property
    def positive(self) -> str | None:
        return self.labels[1] if len(self.labels) == 2 else None

    @classmethod
    def from_examples(cls, train: Examples, order: Sequence[str] = ()) -> "Classification":
        found = {str(label) for label in train.labels or ()}
        ordered = order if found <= set(order) else sorted_names(found)
        return cls(tuple(label for label in ordered if label in found))

    def with_positive(self, label: str) -> "Classification":
        if len(self.labels) != 2:
            raise ConfigError(
                f"positive_label={label!r} names the class that F1 is of where there are two "
                f"classes; here are {len(self.labels)}, and F1 is their mean. Leave it out."
            )
        if label not in self.labels:
            hint = did_you_mean(label, self.labels)
            raise ConfigError(f"positive_label={label!r} is none of the classes. {hint}")
        other = next(name for name in self.labels if name != label)
        return Classification((other, label))

    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        place = {label: index for index, label in enumerate(self.labels)}
        return np.array([place.get(str(label), UNKNOWN) for label in labels], dtype=np.int64)

    def known(self, flat: np.ndarray) -> np.ndarray:
        return np.asarray(flat != UNKNOWN)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        from torch.nn import functional  # not at the top: baselines need no PyTorch

        return functional.cross_entropy(outputs, targets, ignore_index=UNKNOWN, reduction="none")

    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.asarray(outputs.argmax(axis=1))

    def scores(self, outputs: np.ndarray) -> np.ndarray | None:
        return np.asarray(softmax(outputs.astype(np.float64), axis=1), dtype=np.float32)

    def evaluate(self, targets: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        classes = len(self.labels)
        return {name: METRICS[name](targets, predictions, classes) for name in self.metrics}

    def decode(self, predictions: np.ndarray) -> list[Label]:
        return [self.labels[int(index)] for index in predictions]

    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        found = np.unique(predictions)
        if len(found) == 1 and len(np.unique(targets[self.known(targets)])) > 1:
            return f"predicts only {self.labels[int(found[0])]!r}"
        return None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "labels": list(self.labels)}
