"""The vocabulary of plans: what trains, at which rate, on which schedule, until when.

All of it is plain data with pure functions, so a plan can be printed before anything is trained.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Group:
    """Parameters that train together.

    Attributes:
        parts: a pattern over the model's named parts ("embeddings", "layer.3", "pooler",
            "mixing", "head"), with `*` as a wildcard.
        learning_rate: the peak rate of this group.
        weight_decay: decoupled weight decay; biases and norms are always exempt.
    """

    parts: str
    learning_rate: float
    weight_decay: float = 0.01

    def covers(self, part: str) -> bool:
        return fnmatchcase(part, self.parts)


@dataclass(frozen=True)
class Constant:
    """The peak rate throughout."""

    def factor(self, step: int, total: int) -> float:
        return 1.0


@dataclass(frozen=True)
class LinearDecay:
    """Linear warm-up over the first `warmup_ratio` of the steps, then linear decay to 0."""

    warmup_ratio: float = 0.1

    def factor(self, step: int, total: int) -> float:
        """The share of the peak rate at `step` (counted from 0) of `total`."""
        warmup = round(self.warmup_ratio * total)
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (total - step) / max(1, total - warmup))


@dataclass(frozen=True)
class Epochs:
    """Runs all its epochs; the best one by the dev metric is kept."""

    num_train_epochs: int

    def ends(self, dev_scores: list[float]) -> bool:
        """Whether to stop after the epochs scored so far (higher is better)."""
        return len(dev_scores) >= self.num_train_epochs


@dataclass(frozen=True)
class Plateau:
    """Stops when the dev metric has not risen for `patience` epochs, at most `num_train_epochs`."""

    num_train_epochs: int
    patience: int = 3

    def ends(self, dev_scores: list[float]) -> bool:
        if len(dev_scores) >= self.num_train_epochs:
            return True
        best = max(range(len(dev_scores)), key=dev_scores.__getitem__, default=0)
        return len(dev_scores) - 1 - best >= self.patience


Schedule = Constant | LinearDecay
Stop = Epochs | Plateau


@dataclass(frozen=True)
class Phase:
    """One stretch of training: these groups, on this schedule, until this stop.

    A parameter trains if some group covers its part (the first that does sets its rate);
    everything else is frozen.
    """

    name: str
    train: tuple[Group, ...]
    schedule: Schedule
    stop: Stop
