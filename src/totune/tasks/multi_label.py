"""Any number of labels per text or pair: a sigmoid and binary cross-entropy for each.

Targets and predictions are matrices [N, C + 1] of `totune.metrics.label_sets`; what a loss compares
is [N, C].
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from totune.data.examples import Examples, Label, classes_of
from totune.data.label_sets import SEPARATOR, rarest_labels
from totune.errors import ConfigError
from totune.metrics import METRICS, USUAL_THRESHOLD, best_threshold
from totune.metrics.label_sets import label_scores
from totune.tasks.base import TASKS, Task, sorted_names

if TYPE_CHECKING:
    from torch import Tensor

LEAST_SHARE = 1e-3  # that training begins with: a label of fewer rows is not ruled out


@TASKS.register("multi-label")
@dataclass(frozen=True)
class MultiLabel(Task):
    """Multi-label classification.

    Attributes:
        labels: the labels that train rows have, in the order of their source where it declares one,
            else sorted (numbers by value).
        thresholds: for each label the probability from which on it is predicted, where that was
            tuned; empty for 0.5.
        shares: for each label the share of train rows that it applies to, where training begins;
            empty where that is not known.
    """

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.thresholds and len(self.thresholds) != len(self.labels):
            raise ConfigError(
                f"There are {len(self.thresholds)} thresholds for {len(self.labels)} labels; each "
                "label needs one."
            )
        for label, threshold in zip(self.labels, self.thresholds, strict=False):
            if not 0 < threshold < 1:
                raise ConfigError(
                    f"The threshold of the label {label!r} is {threshold}; it must lie between 0 "
                    "and 1."
                )

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("micro-f1", "macro-f1", "exact-match")

    @classmethod
    def from_examples(cls, train: Examples, order: Sequence[str] = ()) -> "MultiLabel":
        found = {str(name) for label in train.labels or () for name in classes_of(label)}
        ordered = order if found <= set(order) else sorted_names(found)
        labels = tuple(label for label in ordered if label in found)
        counts = Counter(name for label in train.labels or () for name in classes_of(label))
        shares = tuple(counts[label] / len(train) for label in labels)
        return cls(labels, shares=shares)

    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        place = {label: index for index, label in enumerate(self.labels)}
        found = np.zeros((len(labels), self.outputs + 1), dtype=np.int16)
        for row, label in zip(found, labels, strict=True):
            for name in classes_of(label):
                row[place.get(str(name), -1)] += 1
        return found

    def flat(self, targets: np.ndarray) -> np.ndarray:
        return targets[:, :-1].astype(np.float32)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """The mean over labels, as transformers has it: outputs and flat targets [P, C] -> [P]."""
        from torch.nn import functional  # not at the top: baselines need no PyTorch

        each = functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
        return each.mean(dim=1)

    def first_outputs(self) -> np.ndarray | None:
        """The log-odds of the labels' shares (Lin et al. 2017, section 4.1).

        From log-odds of 0 the first few hundred steps would go into learning that labels are rare.
        """
        if not self.shares:
            return None
        shares = np.clip(self.shares, LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(logit(shares), dtype=np.float32)

    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self.decide(expit(outputs.astype(np.float64)))

    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Predictions [N, C + 1] from the probabilities of labels [N, C]."""
        found = np.zeros((len(probabilities), self.outputs + 1), dtype=np.int16)
        found[:, :-1] = probabilities >= np.array(self.thresholds or USUAL_THRESHOLD)
        return found

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """The probability of each label, [N, C]; those of a row do not sum to 1."""
        return np.asarray(expit(outputs.astype(np.float64)), dtype=np.float32)

    def check_thresholds(self, metric: str) -> None:
        """Every metric of the task reads decisions, so thresholds can be tuned for each."""

    def tuned(self, targets: np.ndarray, outputs: np.ndarray, metric: str) -> "MultiLabel":
        """With the threshold of each label that gives it the best F1, whatever the metric."""
        scores = self.scores(outputs).T
        found = [
            best_threshold(own, actual, METRICS["f1"])
            for own, actual in zip(scores, targets.T[:-1], strict=True)
        ]
        return replace(self, thresholds=tuple(found))

    def evaluate(
        self, targets: np.ndarray, predictions: np.ndarray, scores: np.ndarray | None = None
    ) -> dict[str, float]:
        return {name: METRICS[name](targets, predictions) for name in self.metrics}

    def label_scores(self, targets: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        found = label_scores(targets, predictions, self.outputs)
        return {
            f"{name}:{label}": value
            for name, values in found.items()
            for label, value in zip(self.labels, values, strict=True)
        }

    def decode(self, predictions: np.ndarray) -> list[Label]:
        return [tuple(self.labels[at] for at in np.flatnonzero(row[:-1])) for row in predictions]

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        return rarest_labels(self.decode(targets))

    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        if (predictions == predictions[:1]).all() and not (targets == targets[:1]).all():
            (only,) = self.decode(predictions[:1])
            names = SEPARATOR.join(map(str, classes_of(only)))
            return f"predicts {names!r} for every row" if names else "predicts no label at all"
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "labels": list(self.labels),
            "thresholds": list(self.thresholds),
            "shares": list(self.shares),
        }
