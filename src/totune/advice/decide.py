"""The verdict: which strategy to use, or why that is still open."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from totune.advice.compare import Comparison
from totune.advice.summary import StrategySummary

SMALL = 0.2  # share of the provisional strategy's storage from which less is worth a sentence

Verdict = Literal["recommended", "undecided", "none"]


@dataclass(frozen=True)
class Decision:
    """The outcome of the comparisons.

    Attributes:
        strategies: the strategies that are compared, the one with the best mean first.
        provisional: the cheapest strategy known to keep up with the best, or the best itself: the
            recommended one, or what to use until the open ones are settled. Where none beats a
            constant answer: the best that is no constant answer itself on the test rows; of those
            that all are the best that has read texts, whose probabilities still rank rows; or None.
        cheaper: number of strategies that are cheaper than the best and beat a constant answer.
        blockers: open comparisons of strategies that are cheaper still.
        undertrained: names of strategies beside `provisional` that might be better if they trained
            longer.
        more_seeds: number of further seeds per strategy that should settle all of them, or None.
        test_rows: least number of test rows that could, where seeds cannot; or None.
    """

    verdict: Verdict
    strategies: tuple[StrategySummary, ...]
    provisional: StrategySummary | None
    cheaper: int
    blockers: tuple[Comparison, ...]
    undertrained: tuple[str, ...]
    more_seeds: int | None
    test_rows: int | None

    @property
    def best(self) -> StrategySummary:
        return self.strategies[0]


def decide(
    best: StrategySummary,
    others: Sequence[StrategySummary],
    comparisons: Sequence[Comparison],
    constant: Collection[str],
    undertrained: Collection[str] = (),
) -> Decision:
    """The cheapest strategy that is not credibly worse than the best by more than the tolerance.

    An open comparison of a strategy that is cheaper still makes the study undecided, and so does a
    strategy that is possibly under-trained, whatever it costs. There is no verdict where only one
    strategy has runs, or where the best is no better than a constant answer.

    Args:
        best: the strategy with the best mean.
        others: the other strategies.
        comparisons: those of the others with the best.
        constant: names of strategies that do not beat a constant answer; they are never the answer,
            nor do they keep the study open by being cheap.
        undertrained: names of strategies that are possibly under-trained.
    """
    found = {comparison.strategy: comparison for comparison in comparisons}
    cheaper = sorted(
        (
            other
            for other in others
            if other.cost_order < best.cost_order and other.strategy not in constant
        ),
        key=lambda each: each.cost_order,
    )
    good = [at for at, each in enumerate(cheaper) if found[each.strategy].verdict == "as good"]
    stop = good[0] if good else len(cheaper)
    provisional: StrategySummary | None = cheaper[stop] if good else best
    cheapest = [found[each.strategy] for each in cheaper[:stop]]
    blockers = tuple(comparison for comparison in cheapest if comparison.verdict == "open")
    more_seeds, test_rows = _needed(blockers)
    if best.strategy in constant:
        ranked = [best, *sorted(others, key=lambda other: found[other.strategy].difference)]
        trained = [each for each in ranked if each.degenerate]  # a constant by nature is no model
        varied = [each for each in ranked if not each.is_constant]
        provisional = next(iter(varied + trained), None)
    brief = tuple(sorted(set(undertrained) - {provisional.strategy if provisional else ""}))
    verdict: Verdict = "undecided" if blockers or brief else "recommended"
    if not others or best.strategy in constant:
        verdict = "none"
    strategies = (best, *others)
    return Decision(
        verdict, strategies, provisional, len(cheaper), blockers, brief, more_seeds, test_rows
    )


def _needed(blockers: Sequence[Comparison]) -> tuple[int | None, int | None]:
    """More seeds that settle all blockers, or test rows where some need them; else neither."""
    if any(blocker.more_seeds is None and blocker.test_rows is None for blocker in blockers):
        return None, None
    rows = [blocker.test_rows for blocker in blockers if blocker.test_rows is not None]
    if rows:
        return None, max(rows)
    return max((blocker.more_seeds or 0 for blocker in blockers), default=None), None


def find_smallest(
    decision: Decision, strategies: Sequence[StrategySummary], comparisons: Sequence[Comparison]
) -> StrategySummary | None:
    """The strategy to prefer where many tasks share one encoder, or None.

    Of those that keep up with the best, the one that stores least per task, if that is at most a
    fifth of what the provisional strategy stores. Without a verdict there is none.

    Args:
        decision: the verdict.
        strategies: those that beat a constant answer.
        comparisons: with the best.
    """
    provisional = decision.provisional
    if decision.verdict == "none" or provisional is None:
        return None
    good = {c.strategy for c in comparisons if c.verdict == "as good"} | {decision.best.strategy}
    keeping_up = [each for each in strategies if each.strategy in good]
    least = min(keeping_up, key=lambda each: (each.storage, each.cost_order))
    small = least.storage <= SMALL * provisional.storage < math.inf
    return least if small and least is not provisional else None
