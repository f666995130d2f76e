"""Which strategies may have been trained too briefly, judged from the epochs of their runs.

The loss decides, not the dev metric: the metric of a small dev set moves in steps, and under a rate
that decays to 0 the last epoch is often the best by a hair although training has converged.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from totune.metrics import Metric
from totune.runs.records import EpochRecord, RunRecord

FALLING = 0.1  # share of itself that the dev loss loses in the second half of the epochs
STEADY = 0.25  # of what it fell in all; steady progress under a rate that decays to 0 linearly
LEARNT = 0.25  # share of itself that the train loss loses where something was learnt
SOLVED = 0.99  # train score, of at most 1, from which more epochs have nothing left to fit,
SURE = 0.8  # once the train loss has fallen by this share
LONGER = 3  # times the epochs to try next


def find_undertrained(
    records: Sequence[RunRecord], weak: Collection[str], metric: Metric
) -> dict[str, str]:
    """The strategies of which more than half of the runs are possibly under-trained.

    Args:
        records: the runs of a study.
        weak: strategies that are little or no better than a constant answer.
        metric: the study's.

    Returns:
        By strategy, the setting that trains it longer: "fine-tuning.num_train_epochs=9".
    """
    found = {}
    for strategy in sorted({record.strategy for record in records}):
        runs = [r for r in records if r.strategy == strategy and r.status == "finished"]
        brief = [run for run in runs if is_undertrained(run, strategy in weak, metric)]
        if 2 * len(brief) > len(runs):
            found[strategy] = _longer(brief[0])
    return found


def _longer(run: RunRecord) -> str:
    """The last phase's epochs, times `LONGER`; the strategies of one k go by their short name."""
    name = run.config.get("strategy", {}).get("name", run.strategy)
    asked = run.strategy if name == "last-k" else name
    return f"{asked}.num_train_epochs={LONGER * len(_last_phase(run))}"


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
        metric: the study's.
    """
    last = _last_phase(run)
    if not last or last[-1].ended.startswith("solved"):
        return False
    if run.degenerate:  # also where a metric that stood still from the beginning ended it
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
    start = _loss(run.epochs[0].train)  # next to that of an untrained head where epochs are short
    before = run.epochs[:-length][-1].dev if length < len(run.epochs) else run.epochs[0].train
    losses = [_loss(before), *(_loss(epoch.dev) for epoch in run.epochs[-length:])]
    half = losses[length // 2 :]
    middle, end = half[0], half[-1]
    steady = middle - end > STEADY * (max(start, middle) - end)
    return end == min(half) and (_fall(half) > FALLING or (barely and steady))


def _loss(metrics: Mapping[str, float]) -> float:
    return metrics.get("loss", math.nan)


def _fall(losses: Sequence[float]) -> float:
    """By which share the last loss is below the first."""
    return 1 - losses[-1] / losses[0] if losses[0] > 0 else 0.0
