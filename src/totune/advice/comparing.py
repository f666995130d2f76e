"""Every strategy against the best, with intervals that hold together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from totune.advice.standings import Entrant, TestSet
from totune.metrics import Metric
from totune.statistics import Paired, hedges_g, holm, paired_bootstrap, seeds_needed, welch

# "worse as trained": possibly under-trained, so what is found against it is not credible
Finding = Literal["credibly worse", "as good", "open", "worse as trained"]

ALPHA = 0.05
SEEDS_TO_START = 3  # fewer give a t interval nobody can use


@dataclass(frozen=True)
class Comparison:
    """A strategy against the best one; differences are positive where the best is better.

    Attributes:
        difference: mean score of the best minus that of the strategy (for an error: the reverse).
        low: lower end of the interval for new examples and seeds. All intervals of a study hold
            together with 95% confidence, by Holm's steps.
        high: its upper end.
        p: two-sided, for no difference, over examples and seeds.
        p_adjusted: Holm-adjusted over the strategies.
        p_tolerance: Holm-adjusted, for a difference of exactly the tolerance; the verdict is
            "open" where it is above .05.
        welch_p: Welch's t-test over seeds alone, on this very test set.
        welch_p_adjusted: Holm-adjusted over the strategies.
        effect_size: Hedges' g over seeds.
        seed_sd: how far seeds alone move the difference.
        example_sd: how far the choice of test rows alone moves it.
        more_seeds: of an open comparison, how many more seeds should settle it, or None.
        test_rows: of an open comparison that seeds cannot settle, the least number of test rows
            that could, or None.

    Numbers that need two seeds on both sides are nan where there is one.
    """

    strategy: str
    best: str
    verdict: Finding
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    p_tolerance: float
    welch_p: float
    welch_p_adjusted: float
    effect_size: float
    seed_sd: float
    example_sd: float
    more_seeds: int | None
    test_rows: int | None


@dataclass(frozen=True)
class Raced:
    """What a race has found.

    Attributes:
        best: the best of those that stayed in it to its end.
        comparisons: of the others, each as it was when the strategy left, or at the end.
    """

    best: str
    comparisons: tuple[Comparison, ...]


def find_best(entrants: Sequence[Entrant], metric: Metric) -> Entrant:
    """The entrant with the best mean score; of equals, the cheapest."""
    return min(entrants, key=lambda e: (-metric.sign * e.standing.mean, e.standing.cost))


def compare(
    best: Entrant,
    others: Sequence[Entrant],
    test: TestSet,
    metric: Metric,
    tolerance: float,
) -> list[Comparison]:
    """Compares each of `others` with the best: worse by more than the tolerance, or not?

    For each strategy the difference is tested against the tolerance, from both sides. Holm's
    procedure over the strategies decides which of these tests count at 5% for the whole family;
    each interval has the confidence of its step, so it excludes the tolerance exactly where the
    test counts. One seed on either side has no known spread: the comparison is open then, whatever
    the examples say.

    The best is picked by the same scores it is tested on. In simulated studies of four strategies
    (3 to 10 seeds, 1,000 rows) some wrong "credibly worse" or "as good" came up in under 2% where
    the truth lay just beyond the tolerance, and in 2.5 to 5.5% where all four were equal and the
    tolerance was 0.
    """
    return judge(best, others, pair_up(best, others, test, metric), metric, tolerance)


def pair_up(
    best: Entrant, others: Sequence[Entrant], test: TestSet, metric: Metric
) -> list[Paired]:
    """What is known of the difference between the best and each of `others`."""
    return [_paired(best, other, test, metric) for other in others]


def judge(
    best: Entrant,
    others: Sequence[Entrant],
    pairs: Sequence[Paired],
    metric: Metric,
    tolerance: float,
    alpha: float = ALPHA,
) -> list[Comparison]:
    """The second half of `compare`: what the differences come to.

    Args:
        best: the strategy with the best mean.
        others: those that it is compared with.
        pairs: the difference for each of them, from `pair_up`.
        metric: that scores are compared in.
        tolerance: how much worse is still good enough.
        alpha: the error of all findings together.
    """
    from_tolerance = [_known(pair.p_value(tolerance)) for pair in pairs]
    seeds_only = [_known(welch(best.scores, other.scores).p) for other in others]
    levels = holm_levels(from_tolerance, alpha)
    adjusted = zip(
        holm([_known(pair.p) for pair in pairs]),
        holm(from_tolerance),
        holm(seeds_only),
        strict=True,
    )
    return [
        _comparison(best, other, pair, metric, tolerance, level, (float(p), float(q), float(w)))
        for other, pair, level, (p, q, w) in zip(others, pairs, levels, adjusted, strict=True)
    ]


def _paired(best: Entrant, other: Entrant, test: TestSet, metric: Metric) -> Paired:
    a, b = (best, other) if metric.higher_is_better else (other, best)
    return paired_bootstrap(metric, test.targets, a.predictions, b.predictions, test.n_classes)


def _comparison(
    best: Entrant,
    other: Entrant,
    pair: Paired,
    metric: Metric,
    tolerance: float,
    level: float,
    adjusted: tuple[float, float, float],
) -> Comparison:
    low, high = pair.interval(1 - level)
    verdict = _verdict(low, high, tolerance)
    more, rows = _needed(pair, tolerance, level) if verdict == "open" else (None, None)
    return Comparison(
        strategy=other.strategy,
        best=best.strategy,
        verdict=verdict,
        difference=pair.difference,
        low=low,
        high=high,
        p=pair.p,
        p_adjusted=adjusted[0],
        p_tolerance=adjusted[1],
        welch_p=welch(best.scores, other.scores).p,
        welch_p_adjusted=adjusted[2],
        effect_size=metric.sign * hedges_g(best.scores, other.scores),
        seed_sd=pair.seed_sd,
        example_sd=pair.example_sd,
        more_seeds=more,
        test_rows=rows,
    )


def _known(p: float) -> float:
    """A p-value that is not known says nothing: 1."""
    return 1.0 if math.isnan(p) else p


def holm_levels(p: Sequence[float], alpha: float) -> list[float]:
    """The error level of each test in Holm's steps; those after the first failure share its."""
    order = sorted(range(len(p)), key=p.__getitem__)
    levels = [0.0] * len(p)
    step, failed = 0, False
    for at in order:
        levels[at] = alpha / (len(p) - step)
        failed = failed or p[at] > levels[at]
        step += not failed
    return levels


def _verdict(low: float, high: float, tolerance: float) -> Finding:
    if low > tolerance:
        return "credibly worse"
    return "as good" if high < tolerance else "open"


def _needed(pair: Paired, tolerance: float, level: float) -> tuple[int | None, int | None]:
    """How many more seeds should settle an open comparison, or how many test rows could."""
    fewest = min(pair.spread.n_seeds)
    if not pair.spread.is_known:
        return SEEDS_TO_START - fewest, None
    needed = seeds_needed(pair, abs(pair.difference - tolerance), 1 - level)
    more = None if needed.seeds is None else max(1, needed.seeds - fewest)
    return more, needed.examples
