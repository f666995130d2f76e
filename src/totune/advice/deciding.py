"""The verdict: which strategy to use, or why that is still open."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from totune.advice.comparing import Comparison
from totune.advice.standings import Entrant

SMALL = 0.2  # how much of the provisional strategy's storage is worth a word

Verdict = Literal["recommended", "undecided", "none"]


@dataclass(frozen=True)
class Decision:
    """What the comparisons come to.

    Attributes:
        entrants: the strategies that are compared, the one with the best mean first.
        provisional: the cheapest strategy known to keep up with the best, or the best itself: the
            recommended one, or what to use until the open ones are settled. Where none beats a
            constant answer: the best that is no constant answer itself, or None.
        cheaper: number of strategies that are cheaper than the best and beat a constant answer.
        blockers: comparisons of still cheaper strategies that are open.
        undertrained: names of strategies beside `provisional` that might be better if they trained
            longer.
        more_seeds: how many more seeds per strategy should settle all of them, or None.
        test_rows: where seeds cannot, the least number of test rows that could, or None.
    """

    verdict: Verdict
    entrants: tuple[Entrant, ...]
    provisional: Entrant | None
    cheaper: int
    blockers: tuple[Comparison, ...]
    undertrained: tuple[str, ...]
    more_seeds: int | None
    test_rows: int | None

    @property
    def best(self) -> Entrant:
        return self.entrants[0]


def decide(
    best: Entrant,
    others: Sequence[Entrant],
    comparisons: Sequence[Comparison],
    constant: Collection[str],
    undertrained: Collection[str] = (),
) -> Decision:
    """The cheapest strategy that is not credibly worse than the best by more than the tolerance.

    A strategy on the way there that is open makes the study undecided, and so does one that is
    possibly under-trained, wherever it stands. There is no verdict where one strategy alone has
    runs, or where the best is no better than a constant answer.

    Args:
        best: the strategy with the best mean.
        others: the other strategies.
        comparisons: of each of them with the best.
        constant: strategies that do not beat a constant answer; they are never the answer, nor do
            they keep the study open by being cheap.
        undertrained: strategies that are possibly under-trained.
    """
    found = {comparison.strategy: comparison for comparison in comparisons}
    cheaper = sorted(
        (
            other
            for other in others
            if other.standing.cost < best.standing.cost and other.strategy not in constant
        ),
        key=lambda entrant: entrant.standing.cost,
    )
    good = [
        at for at, entrant in enumerate(cheaper) if found[entrant.strategy].verdict == "as good"
    ]
    stop = good[0] if good else len(cheaper)
    provisional: Entrant | None = cheaper[stop] if good else best
    on_the_way = [found[entrant.strategy] for entrant in cheaper[:stop]]
    blockers = tuple(comparison for comparison in on_the_way if comparison.verdict == "open")
    more_seeds, test_rows = _needed(blockers)
    if best.strategy in constant:
        ranked = [best, *sorted(others, key=lambda other: found[other.strategy].difference)]
        provisional = next((each for each in ranked if not each.is_constant), None)
    brief = tuple(sorted(set(undertrained) - {provisional.strategy if provisional else ""}))
    verdict: Verdict = "undecided" if blockers or brief else "recommended"
    if not others or best.strategy in constant:
        verdict = "none"
    entrants = (best, *others)
    return Decision(
        verdict, entrants, provisional, len(cheaper), blockers, brief, more_seeds, test_rows
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
    decision: Decision, entrants: Sequence[Entrant], comparisons: Sequence[Comparison]
) -> Entrant | None:
    """The strategy to look at where many tasks share one encoder, or None.

    Of those that keep up with the best, the one that stores least per task, if that is at most a
    fifth of what the provisional strategy stores. Without a verdict there is none.

    Args:
        decision: the verdict.
        entrants: the strategies that beat a constant answer.
        comparisons: with the best.
    """
    provisional = decision.provisional
    if decision.verdict == "none" or provisional is None:
        return None
    good = {c.strategy for c in comparisons if c.verdict == "as good"} | {decision.best.strategy}
    keeping_up = [entrant for entrant in entrants if entrant.strategy in good]
    least = min(keeping_up, key=lambda e: (e.standing.storage_bytes, e.standing.cost))
    small = least.standing.storage_bytes <= SMALL * provisional.standing.storage_bytes < math.inf
    return least if small and least is not provisional else None
