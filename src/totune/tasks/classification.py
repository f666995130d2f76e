"""One of several classes per text or pair: cross-entropy, accuracy, F1, Matthews.

For skewed classes the loss can weight rows by their class, or attend to rows that are hard, and of
two classes the threshold between them can be tuned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.special import softmax

from totune.data.examples import Examples, Label
from totune.errors import ConfigError
from totune.metrics import best_threshold, get_metric
from totune.registry import did_you_mean
from totune.tasks.base import TASKS, UNKNOWN, Task, sorted_names

if TYPE_CHECKING:
    from torch import Tensor


@TASKS.register("classification")
@dataclass(frozen=True)
class Classification(Task):
    """Single-label classification.

    The loss of a row is w * sum_c q_c (1 - p_c)^gamma (-log p_c): cross-entropy unless options say
    otherwise.

    Attributes:
        labels: the class names, in the order of their source where it declares one, else sorted
            (numbers by value); with two, the second is the positive class of F1.
        class_weight: `balanced` gives every class the same weight in all: w is N / (C n) for each
            of the n rows of a class, of N rows and C classes, as in scikit-learn. Its mean is 1.
        focal_gamma: gamma of the focal loss (Lin et al. 2017, equation 5; they use 2), which counts
            rows the less the surer they are right; 0 for none. Trained by gradient alone.
        label_smoothing: share of a row's label that is spread over all classes evenly, so that
            q_c is 1 - label_smoothing + label_smoothing / C for its own (Szegedy et al. 2016,
            section 7). Trained by gradient alone.
        weights: w of each class, [C]; empty where all are 1.
        metric: reported before the others; empty without one.
        thresholds: the probability from which on a row is of the second of two classes, [1]; empty
            where the more probable one is predicted.
    """

    labels: tuple[str, ...]
    class_weight: Literal["balanced"] | None = None
    focal_gamma: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weights: tuple[float, ...] = ()
    metric: str = ""
    thresholds: tuple[float, ...] = ()

    options: ClassVar[tuple[str, ...]] = ("class_weight", "focal_gamma", "label_smoothing")
    further_metrics: ClassVar[tuple[str, ...]] = (
        *("balanced-accuracy", "macro-f1", "micro-f1", "weighted-f1"),
        *("roc-auc", "pr-auc", "log-loss", "calibration-error"),
    )
    takes_functions: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def metrics(self) -> tuple[str, ...]:
        own = (self.metric,) if self.metric else ()
        return (*own, "accuracy", "f1", "matthews")

    @property
    def positive(self) -> str | None:
        return self.labels[1] if len(self.labels) == 2 else None

    @property
    def gradient_only(self) -> tuple[str, ...]:
        named = {name: getattr(self, name) for name in ("focal_gamma", "label_smoothing")}
        return tuple(f"{name}={value:g}" for name, value in named.items() if value)

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
        return replace(
            self,
            labels=(other, label),
            weights=self.weights if other == self.labels[0] else self.weights[::-1],
            thresholds=tuple(
                each if other == self.labels[0] else 1 - each for each in self.thresholds
            ),
        )

    def with_options(self, options: Mapping[str, Any], train: Examples) -> "Classification":
        task = super().with_options(options, train)
        assert isinstance(task, Classification)
        if task.class_weight is None:
            return replace(task, weights=())
        counts = np.bincount(task.targets(train.labels or ()), minlength=task.outputs)
        weights = counts.sum() / (task.outputs * np.maximum(counts, 1))
        return replace(task, weights=tuple(weights.tolist()))

    def row_weights(self, flat: np.ndarray) -> np.ndarray | None:
        return np.take(self.weights, flat, mode="clip") if self.weights else None

    def check_thresholds(self, metric: str) -> None:
        if len(self.labels) != 2:
            raise ConfigError(
                f"tune_threshold is for two classes; here are {len(self.labels)}, of which the "
                "most probable is predicted. Leave it out; the option "
                "`task.class_weight=balanced` gives rare classes more weight."
            )
        if get_metric(metric).of_probabilities:
            raise ConfigError(
                f"tune_threshold is of no use to metric={metric!r}, which scores probabilities, "
                "not decisions. Leave it out, or name another metric, such as "
                "`metric='balanced-accuracy'`."
            )

    def tuned(self, targets: np.ndarray, outputs: np.ndarray, metric: str) -> "Classification":
        self.check_thresholds(metric)
        scores = self.scores(outputs)[:, 1]
        return replace(self, thresholds=(best_threshold(scores, targets, get_metric(metric)),))

    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        place = {label: index for index, label in enumerate(self.labels)}
        return np.array([place.get(str(label), UNKNOWN) for label in labels], dtype=np.int64)

    def known(self, flat: np.ndarray) -> np.ndarray:
        return np.asarray(flat != UNKNOWN)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        import torch  # not at the top: baselines need no PyTorch
        from torch.nn import functional

        smoothing, known = self.label_smoothing, targets.clamp(min=0)
        if not self.focal_gamma:
            found = functional.cross_entropy(
                outputs,
                targets,
                ignore_index=UNKNOWN,
                reduction="none",
                label_smoothing=smoothing,
            )
        else:
            logs = functional.log_softmax(outputs, dim=-1)  # [P, C]
            each = -((1 - logs.exp()) ** self.focal_gamma) * logs
            own = each.gather(-1, known.unsqueeze(-1)).squeeze(-1)  # [P]
            found = (1 - smoothing) * own + smoothing * each.mean(dim=-1)
            found = found.masked_fill(targets == UNKNOWN, 0.0)
        if not self.weights:
            return found
        return found * torch.tensor(self.weights, dtype=found.dtype, device=found.device)[known]

    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if self.thresholds:
            # A NumPy scalar: beside a float of Python, scores would be compared in float32.
            chosen = self.scores(outputs)[:, 1] >= np.float64(self.thresholds[0])
            return np.asarray(chosen, dtype=np.int64)
        return np.asarray(outputs.argmax(axis=1))

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(outputs.astype(np.float64), axis=1), dtype=np.float32)

    def evaluate(
        self, targets: np.ndarray, predictions: np.ndarray, scores: np.ndarray | None = None
    ) -> dict[str, float]:
        found = {}
        for metric in map(get_metric, self.metrics):
            read = scores if metric.of_probabilities else predictions
            if read is not None:
                found[metric.name] = metric(targets, read, len(self.labels))
        return found

    def decode(self, predictions: np.ndarray) -> list[Label]:
        return [self.labels[int(index)] for index in predictions]

    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        found = np.unique(predictions)
        if len(found) == 1 and len(np.unique(targets[self.known(targets)])) > 1:
            return f"predicts only {self.labels[int(found[0])]!r}"
        return None

    def to_json(self) -> dict[str, Any]:
        # What is not set is left out: runs of versions without it keep their identity.
        more = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        chosen = {name: value for name, value in more.items() if value}
        lists = {name: list(v) if isinstance(v, tuple) else v for name, v in chosen.items()}
        return {"name": self.name, "labels": list(self.labels), **lists}
