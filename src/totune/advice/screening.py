"""Strategies that scores alone do not settle: no better than a constant answer, or under-trained.

Whether a strategy was trained too briefly is judged from the epochs of its runs. The loss decides,
not the dev metric: the metric of a small dev set moves in steps, and under a rate that decays to 0
the last epoch is often the best by a hair although training has converged.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.advice.compare import Comparison
from totune.advice.summary import StrategySummary, TestSet
from totune.metrics import PADDING, Metric
from totune.metrics.label_sets import constant_answers
from totune.runs.records import EpochRecord, RunRecord

FALLING = 0.1  # share of itself that the dev loss loses in the second half of the epochs
STEADY = 0.25  # of its whole fall; steady progress under a rate that decays to 0 linearly
LEARNT = 0.25  # share of itself that the train loss loses where something was learnt
SOLVED = 0.99  # train score, of at most 1, from which more epochs have nothing left to fit,
SURE = 0.8  # once the train loss has fallen by this share
LONGER = 3  # times the epochs to try next
_ROUNDING = 1e-12  # the mean of equal scores may be off by that


@dataclass(frozen=True)
class Screening:
    """Strategies that scores alone do not settle.

    Attributes:
        floor: score of the best constant answer, times the metric's sign.
        constant: strategies that do not beat it.
        undertrained: by strategy that is possibly under-trained, the setting that trains it longer.
    """

    floor: float
    constant: set[str]
    undertrained: dict[str, str]


def screen(
    strategies: Sequence[StrategySummary], best: StrategySummary, test: TestSet, metric: Metric
) -> Screening:
    """Finds which strategies do not beat a constant answer, and which may be under-trained.

    A strategy that is not yet half as far above a constant answer as the best counts as weak; see
    `find_undertrained`.
    """
    floor = max(
        metric.sign * metric(test.targets, answer, test.n_classes)
        for answer in _constant_answers(test, metric)
    )
    scores = {each.strategy: metric.sign * each.score.mean for each in strategies}
    constant = {name for name, score in scores.items() if score <= floor + _ROUNDING}
    half = floor + (scores[best.strategy] - floor) / 2
    weak = {name for name, score in scores.items() if score < half}
    return Screening(floor, constant, find_undertrained(strategies, weak | constant, metric))


def _constant_answers(test: TestSet, metric: Metric) -> Iterator[NDArray[Any]]:
    """Answers that ignore the text: each class, sets of labels, or the mean target.

    Of probabilities: the shares of the classes.
    """
    targets = test.targets
    if metric.multi_label and targets.ndim == 2:
        for answer in constant_answers(targets):
            yield np.broadcast_to(answer, targets.shape)
        return
    if metric.of_probabilities:
        shares = np.bincount(np.maximum(targets, 0), minlength=test.n_classes or 0) / len(targets)
        yield np.tile(shares, (len(targets), 1))
        return
    if targets.dtype.kind not in "iu":
        yield np.full(len(targets), targets.mean())
        return
    padding = (targets == PADDING) & metric.per_word
    for value in np.unique(np.maximum(targets[~padding], 0)):
        yield np.where(padding, PADDING, value).astype(targets.dtype)


def as_trained(comparison: Comparison, undertrained: Collection[str]) -> Comparison:
    """A comparison; nothing is credible against a strategy that might only need more training."""
    if comparison.strategy in undertrained and comparison.verdict == "credibly worse":
        return replace(comparison, verdict="worse as trained")
    return comparison


def find_undertrained(
    strategies: Sequence[StrategySummary], weak: Collection[str], metric: Metric
) -> dict[str, str]:
    """The strategies of which more than half of the usable runs are possibly under-trained.

    Args:
        strategies: those of a study.
        weak: names of strategies that are little or no better than a constant answer.
        metric: the study's metric.

    Returns:
        By strategy, the setting that trains it longer: "fine-tuning.num_train_epochs=9".
    """
    found = {}
    for each in sorted(strategies, key=lambda one: one.strategy):
        runs = each.runs
        brief = [run for run in runs if is_undertrained(run, each.strategy in weak, metric)]
        if 2 * len(brief) > len(runs):
            found[each.strategy] = _longer(brief[0])
    return found


def _longer(run: RunRecord) -> str:
    """The epochs of the last phase times `LONGER`, as a setting of the run's own strategy.

    A strategy may run under a label of the user's; settings know it by its own name alone.
    """
    strategy = run.config.get("strategy") or {"name": run.strategy}
    name = strategy["name"]
    if name == "last-k":
        name = f"last-{strategy['options']['k']}"
    return f"{name}.num_train_epochs={LONGER * len(_last_phase(run))}"


def is_undertrained(run: RunRecord, weak: bool, metric: Metric) -> bool:
    """Whether a run gives one answer for every row, or may have had too few epochs.

    That is, it trained all epochs of its last phase, and one of two holds:

    - its dev loss was lowest at the end, and lost over a tenth of itself in the second half of the
      phase; or, where the train loss has hardly fallen yet, over a quarter of its whole fall;
    - the train loss has hardly fallen, by under a quarter of itself, and the strategy is weak.

    A run that stopped early, or has solved the training rows, has had enough; a head that was
    solved is never under-trained.

    Args:
        run: a finished run; a baseline has no epochs, and is never under-trained.
        weak: whether its strategy is little or no better than a constant answer.
        metric: the study's metric.
    """
    last = _last_phase(run)
    if not last or last[-1].ended.startswith("solved"):
        return False
    if run.degenerate:  # also where a metric that never moved ended the phase
        return True
    if _stopped_early(last[-1]):
        return False
    learnt = _fall([_loss(epoch.train) for epoch in run.epochs])
    if learnt >= SURE and _is_solved(last[-1], metric):
        return False
    barely = learnt < LEARNT and len(run.epochs) > 1
    return (weak and barely) or _is_falling(run, len(last), barely)


def _last_phase(run: RunRecord) -> list[EpochRecord]:
    return [epoch for epoch in run.epochs if epoch.phase == run.epochs[-1].phase]


def _stopped_early(last: EpochRecord) -> bool:
    """Whether a plateau or a gap ended the phase, in the words of `totune.strategies.phases`."""
    return bool(last.ended) and not last.ended.endswith(" done")


def _is_solved(last: EpochRecord, metric: Metric) -> bool:
    return metric.unit == "points" and last.train.get(metric.name, 0.0) >= SOLVED


def _is_falling(run: RunRecord, length: int, barely: bool) -> bool:
    """Whether the dev loss fell until the end of the last phase, which is `length` epochs long."""
    start = _loss(run.epochs[0].train)  # close to that of an untrained head where epochs are short
    before = run.epochs[:-length][-1].dev if length < len(run.epochs) else run.epochs[0].train
    losses = [_loss(before), *(_loss(epoch.dev) for epoch in run.epochs[-length:])]
    half = losses[length // 2 :]
    middle, end = half[0], half[-1]
    steady = middle - end > STEADY * (max(start, middle) - end)
    return end == min(half) and (_fall(half) > FALLING or (barely and steady))


def _loss(metrics: Mapping[str, float]) -> float:
    return metrics.get("loss", math.nan)


def _fall(losses: Sequence[float]) -> float:
    """The share by which the last loss is below the first."""
    return 1 - losses[-1] / losses[0] if losses[0] > 0 else 0.0
