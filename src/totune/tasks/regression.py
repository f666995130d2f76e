"""A number per text or pair: squared error on the label range, Pearson and Spearman."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from totune.data.examples import Examples, Label
from totune.metrics import get_metric
from totune.tasks.base import TASKS, Task

if TYPE_CHECKING:
    from torch import Tensor


@TASKS.register("regression")
@dataclass(frozen=True)
class Regression(Task):
    """Regression to a score.

    The head predicts the score scaled so that the training range is 0..1; predictions come back
    on the labels' own scale.

    Attributes:
        low: the smallest training label.
        high: the largest.
        metric: a person's own, reported before the others; empty without one.
    """

    low: float
    high: float
    metric: str = ""

    takes_functions: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        return 1

    @property
    def metrics(self) -> tuple[str, ...]:
        own = (self.metric,) if self.metric else ()
        return (*own, "pearson", "spearman", "mse")

    @classmethod
    def from_examples(cls, train: Examples, order: Sequence[str] = ()) -> "Regression":
        values = _scores(train.labels or ())
        return cls(min(values), max(values))

    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        return np.array(_scores(labels), dtype=np.float32)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        from torch.nn import functional  # not at the top: baselines need no PyTorch

        scaled = (targets - self.low) / (self.high - self.low)
        return functional.mse_loss(outputs.squeeze(-1), scaled, reduction="none")

    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self.low + outputs[:, 0] * (self.high - self.low)

    def scores(self, outputs: np.ndarray) -> np.ndarray | None:
        return None

    def evaluate(
        self, targets: np.ndarray, predictions: np.ndarray, scores: np.ndarray | None = None
    ) -> dict[str, float]:
        return {name: get_metric(name)(targets, predictions) for name in self.metrics}

    def decode(self, predictions: np.ndarray) -> list[Label]:
        return [float(value) for value in predictions]

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        return None

    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        if np.ptp(predictions) < 1e-3 * (self.high - self.low):
            return f"predicts {float(predictions.mean()):.3f} for every row"
        return None

    def to_json(self) -> dict[str, Any]:
        chosen = {"metric": self.metric} if self.metric else {}
        return {"name": self.name, "low": self.low, "high": self.high, **chosen}


def _scores(labels: Sequence[Label]) -> list[float]:
    return [float(label) for label in labels if not isinstance(label, tuple)]
