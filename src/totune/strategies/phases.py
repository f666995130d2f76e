"""The vocabulary of plans: what trains, at which rate, on which schedule, until when.

All of it is plain data with pure functions, so a plan can be printed before anything is trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

Kind = Literal["weight", "bias", "norm", "inserted"]
Objective = Literal["task", "pairs"]


@dataclass(frozen=True)
class Group:
    """Parameters that train together.

    Attributes:
        parts: a pattern over the model's named parts ("embeddings", "layer.3", "pooler",
            "mixing", "head"), with `*` as a wildcard.
        learning_rate: the peak rate of this group; 0 where it is computed instead.
        weight_decay: decoupled weight decay; biases and norms are always exempt.
        kinds: which kinds of parameters of these parts; () for all. `norm` are a norm's weight and
            bias, `bias` all other biases, `inserted` what the strategy put in.
    """

    parts: str
    learning_rate: float
    weight_decay: float = 0.01
    kinds: tuple[Kind, ...] = ()

    def covers(self, part: str, kind: Kind) -> bool:
        return fnmatchcase(part, self.parts) and (not self.kinds or kind in self.kinds)


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
class SlantedTriangular:
    """Short linear rise, long linear fall (Howard and Ruder 2018, section 3.2, equation 3).

    With T steps and n = step + 1, cut = floor(T cut_frac); p = n / cut if n < cut, else
    1 - (n - cut) / (T - cut); the share of the peak rate is (1 + p (ratio - 1)) / ratio. The paper
    begins with n = 0; here, as in AllenNLP, the first update is n = 1.

    Attributes:
        cut_frac: the share of the steps in which the rate rises.
        ratio: how many times smaller the lowest rate is than the peak.
    """

    cut_frac: float = 0.1
    ratio: float = 32.0

    def factor(self, step: int, total: int) -> float:
        """The share of the peak rate at `step` (counted from 0) of `total`."""
        done, cut = step + 1, int(total * self.cut_frac)
        rise = done / cut if done < cut else 1 - (done - cut) / max(1, total - cut)
        return (1 + rise * (self.ratio - 1)) / self.ratio


Curve = Constant | LinearDecay | SlantedTriangular


@dataclass(frozen=True)
class Stretch:
    """One phase's stretch of a schedule that runs over several phases.

    Attributes:
        schedule: the whole.
        done: the share of it that lies before this phase.
        share: the share that this phase is.
    """

    schedule: Curve
    done: float
    share: float

    def factor(self, step: int, total: int) -> float:
        """The share of the peak rate at `step` (counted from 0) of the phase's `total`."""
        whole = round(total / self.share)
        return self.schedule.factor(round(self.done * whole) + step, whole)


Schedule = Curve | Stretch


@dataclass(frozen=True)
class EpochScores:
    """The epochs of a phase so far, by the deciding metric, higher being better.

    Attributes:
        dev: after each epoch.
        train: after each epoch, dropout off; empty unless the stop `compares`.
    """

    dev: Sequence[float]
    train: Sequence[float] = ()


@dataclass(frozen=True)
class Epochs:
    """Runs all its epochs."""

    num_train_epochs: int

    compares: ClassVar[bool] = False

    def ends(self, scores: EpochScores) -> str:
        """Why the phase ends after the epochs scored so far; "" where it goes on."""
        return _all_run(scores, self.num_train_epochs)

    def best(self, scores: EpochScores) -> int:
        """The epoch, from 0, whose weights the next phase gets with restore="best"."""
        return _best(scores)


@dataclass(frozen=True)
class Plateau:
    """Stops when dev has not improved for `patience` epochs, at most `num_train_epochs`."""

    num_train_epochs: int
    patience: int = 3

    compares: ClassVar[bool] = False

    def ends(self, scores: EpochScores) -> str:
        return _no_rise(scores, self.patience) or _all_run(scores, self.num_train_epochs)

    def best(self, scores: EpochScores) -> int:
        return _best(scores)


@dataclass(frozen=True)
class Gap:
    """Stops when train leads dev by more than `tolerance` for `gap_patience` epochs in a row.

    A stacked network must stop before it over-fits frozen features, "closely monitoring the
    discrepancy between training accuracy and testing accuracy"; when is left open by Wang et al.
    (2019, Discussions). A plateau of the dev metric, or `num_train_epochs`, ends the phase too.
    Whatever ends it, it restores the best epoch within the tolerance, not the one that broke it.
    Where no epoch is within, that is the first: initial weights would leave out the phase.

    Attributes:
        tolerance: in the metric's own scale (0.05 is five points of accuracy); errors without an
            upper bound need one of their own.
        gap_patience: so many epochs in a row above the tolerance end the phase.
        patience: epochs without a better dev score.
    """

    num_train_epochs: int
    tolerance: float = 0.05
    gap_patience: int = 1
    patience: int = 3

    compares: ClassVar[bool] = True

    def ends(self, scores: EpochScores) -> str:
        gaps = _gaps(scores)
        recent = gaps[-self.gap_patience :]
        if len(recent) == self.gap_patience and min(recent) > self.tolerance:
            return f"train leads dev by {gaps[-1]:.3f}, more than {self.tolerance:g}"
        return _no_rise(scores, self.patience) or _all_run(scores, self.num_train_epochs)

    def best(self, scores: EpochScores) -> int:
        within = [at for at, gap in enumerate(_gaps(scores)) if gap <= self.tolerance]
        return max(within, key=scores.dev.__getitem__, default=0)


@dataclass(frozen=True)
class Solved:
    """Ends at the optimum, which is computed: no steps, so neither rates nor a schedule.

    For a model whose `is_linear_probe` holds, and a frozen encoder: the head is logistic regression
    (ridge regression for scores) on standardised vectors of the training rows, under an L2 penalty
    that cross-validation inside them chooses. Counts as one epoch.

    Attributes:
        folds: of the cross-validation.
    """

    folds: int = 5

    num_train_epochs: ClassVar[int] = 1
    compares: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"Solved, with an L2 penalty chosen by {self.folds}-fold cross-validation"

    def ends(self, scores: EpochScores) -> str:
        return "solved" if scores.dev else ""

    def best(self, scores: EpochScores) -> int:
        return 0


Stop = Epochs | Plateau | Gap | Solved


def _all_run(scores: EpochScores, num_train_epochs: int) -> str:
    if len(scores.dev) < num_train_epochs:
        return ""
    if num_train_epochs == 1:
        return "its epoch is done"
    return f"its {num_train_epochs} epochs are done"


def _best(scores: EpochScores) -> int:
    """The first epoch with the best dev score."""
    return max(range(len(scores.dev)), key=scores.dev.__getitem__, default=0)


def _gaps(scores: EpochScores) -> list[float]:
    """How far train leads dev after each epoch."""
    return [train - dev for train, dev in zip(scores.train, scores.dev, strict=True)]


def _no_rise(scores: EpochScores, patience: int) -> str:
    if len(scores.dev) - 1 - _best(scores) < patience:
        return ""
    return f"dev has not improved for {patience} epoch{'s' if patience > 1 else ''}"


@dataclass(frozen=True)
class Phase:
    """One stretch of training: these groups, on this schedule, until this stop.

    A parameter trains if some group covers it (the first that does sets its rate); everything else
    is frozen.

    Attributes:
        restore: the epoch of this phase that the next one starts from: the `last`, with what the
            optimizer knows, or the `best` by its stop.
        objective: what its steps minimise: the loss of the `task`, or that of `pairs` of a batch's
            rows (`modules/pairs.py`). In the latter the head, a linear layer, takes no steps: each
            epoch leaves it at the nearest of the classes' mean vectors.
    """

    name: str
    train: tuple[Group, ...]
    schedule: Schedule
    stop: Stop
    restore: Literal["last", "best"] = "last"
    objective: Objective = "task"


COMPUTED_HEAD = Group("head", learning_rate=0.0, weight_decay=0.0)


def solved_head(name: str = "head") -> Phase:
    """A linear probe that is solved rather than stepped through."""
    return Phase(name, (COMPUTED_HEAD,), Constant(), Solved())
