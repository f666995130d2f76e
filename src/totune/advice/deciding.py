"""The verdict: which strategy to use, or why that is still open."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from totune.advice.comparing import Comparison
from totune.advice.standings import Entrant

SMALL = 0.2  # how much of the leaning strategy's storage is worth a word

Verdict = Literal["recommended", "undecided", "none"]


@dataclass(frozen=True)
class Decision:
    """What the comparisons come to.

    Attributes:
        leaning: the cheapest strategy known to keep up with the best, or the best itself: the
            recommended one, or what to use until the open ones are settled.
        cheaper: how many strategies are cheaper than the best.
        blockers: comparisons of still cheaper strategies that are open.
        more_seeds: how many more seeds per strategy should settle all of them, or None.
        test_rows: where seeds cannot, the least number of test rows that could, or None.
    """

    verdict: Verdict
    best: Entrant
    leaning: Entrant
    cheaper: int
    blockers: tuple[Comparison, ...]
    more_seeds: int | None
    test_rows: int | None


def decide(
    best: Entrant,
    others: Sequence[Entrant],
    comparisons: Sequence[Comparison],
    beats_constant: bool,
) -> Decision:
    """The cheapest strategy that is not credibly worse than the best by more than the tolerance.

    A strategy on the way there that is open makes the study undecided. There is no verdict where
    one strategy alone is usable, or where the best is no better than a constant answer.
    """
    found = {comparison.strategy: comparison for comparison in comparisons}
    cheaper = sorted(
        (other for other in others if other.standing.cost < best.standing.cost),
        key=lambda entrant: entrant.standing.cost,
    )
    good = [
        at for at, entrant in enumerate(cheaper) if found[entrant.strategy].verdict == "as good"
    ]
    stop = good[0] if good else len(cheaper)
    leaning = cheaper[stop] if good else best
    on_the_way = [found[entrant.strategy] for entrant in cheaper[:stop]]
    blockers = tuple(comparison for comparison in on_the_way if comparison.verdict == "open")
    more_seeds, test_rows = _needed(blockers)
    verdict: Verdict = "undecided" if blockers else "recommended"
    if not others or not beats_constant:
        verdict = "none"
    return Decision(verdict, best, leaning, len(cheaper), blockers, more_seeds, test_rows)


def _needed(blockers: Sequence[Comparison]) -> tuple[int | None, int | None]:
    more = [blocker.more_seeds for blocker in blockers if blocker.more_seeds is not None]
    rows = [blocker.test_rows for blocker in blockers if blocker.test_rows is not None]
    settled = len(more) == len(blockers)
    return (max(more) if more and settled else None), (max(rows) if rows else None)


def find_smallest(
    decision: Decision, entrants: Sequence[Entrant], comparisons: Sequence[Comparison]
) -> Entrant | None:
    """The strategy to look at where many tasks share one encoder, or None.

    Of those that keep up with the best, the one that stores least per task, if that is at most a
    fifth of what the leaning strategy stores. Without a verdict there is none.
    """
    good = {c.strategy for c in comparisons if c.verdict == "as good"} | {decision.best.strategy}
    keeping_up = [entrant for entrant in entrants if entrant.strategy in good]
    least = min(keeping_up, key=lambda e: (e.standing.storage_bytes, e.standing.cost))
    most = SMALL * decision.leaning.standing.storage_bytes
    small = least is not decision.leaning and least.standing.storage_bytes <= most < math.inf
    return least if small and decision.verdict != "none" else None
