"""Comparisons of every strategy with the best, with simultaneous intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from totune.advice.summary import StrategySummary, TestSet
from totune.metrics import Metric
from totune.statistics import (
    FIXED,
    Paired,
    SeedVariance,
    adjusted_level,
    hedges_g,
    holm,
    moderate,
    paired_bootstrap,
    run_variance,
    seeds_needed,
    steps_p,
    usual_variance,
    welch,
)

# "worse as trained": possibly under-trained, so nothing found against it is credible
Finding = Literal["credibly worse", "as good", "open", "worse as trained"]

ALPHA = 0.05
SEEDS_TO_START = 3  # fewer give a t interval that is too wide to use
REPETITIONS_TO_START = 2  # of a cross-validation, whose every fold is a run


@dataclass(frozen=True)
class Comparison:
    """A strategy against the best one; differences are positive where the best is better.

    Attributes:
        difference: mean score of the best minus that of the strategy (for an error: the reverse).
        low: lower end of the interval for new examples and seeds. All intervals of a study hold
            together with 95% confidence (`totune.statistics.selection`).
        high: its upper end.
        p: two-sided p-value for no difference, over examples and seeds.
        p_adjusted: the same, adjusted by steps with the studentized range over all strategies,
            since the best was picked by the same scores (`totune.statistics.selection`).
        p_tolerance: p-value for a difference of exactly the tolerance, adjusted likewise; the
            verdict is "open" where it is above .05.
        welch_p: p-value of Welch's t-test over seeds alone, on this very test set.
        welch_p_adjusted: the same, Holm-adjusted over the strategies.
        effect_size: Hedges' g over seeds.
        seed_sd: standard deviation of the difference over seeds alone.
        example_sd: standard deviation of the difference over the choice of test rows alone.
        more_seeds: number of further seeds that should settle an open comparison, or None.
        test_rows: least number of test rows that could settle an open comparison where seeds
            cannot, or None.

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
class RaceFindings:
    """The findings of a race.

    Attributes:
        best: name of the best strategy of those that stayed to the end.
        comparisons: those of the others, each as of its elimination, or as of the end.
    """

    best: str
    comparisons: tuple[Comparison, ...]


def find_best(strategies: Sequence[StrategySummary], metric: Metric) -> StrategySummary:
    """The strategy with the best mean score; of equals, the cheapest."""
    return min(strategies, key=lambda each: (-metric.sign * each.score.mean, each.cost_order))


def compare(
    best: StrategySummary,
    others: Sequence[StrategySummary],
    test: TestSet,
    metric: Metric,
    tolerance: float,
) -> list[Comparison]:
    """Compares each of `others` with the best: worse by more than the tolerance, or not?

    For each strategy the difference is tested against the tolerance, from both sides, with seed
    variances estimated from all strategies together (`totune.statistics.moderation`), so that all
    findings together err in at most 5% of studies, although the best is picked by the same scores
    (`totune.statistics.selection`). An interval lies on one side of the tolerance exactly where its
    test is significant. One seed on either side has no known spread: the comparison is then open,
    whatever the examples say.

    `benchmarks/verdicts.py` simulates studies; its results are in `docs/verdicts.md`.
    """
    return judge(best, others, pair_up(best, others, test, metric), metric, tolerance)


def pair_up(
    best: StrategySummary,
    others: Sequence[StrategySummary],
    test: TestSet,
    metric: Metric,
    known: Sequence[StrategySummary] = (),
) -> list[Paired]:
    """Estimates the difference between the best and each of `others`.

    Args:
        best: the strategy with the best mean.
        others: the strategies that it is compared with.
        test: the test set.
        metric: the metric that scores are compared in.
        known: further strategies whose seeds inform the variances.
    """
    noise = seed_variances([best, *others, *known], metric, test)
    return [_paired(best, other, test, metric, noise) for other in others]


def seed_variances(
    strategies: Sequence[StrategySummary], metric: Metric, test: TestSet
) -> dict[str, SeedVariance]:
    """The moderated variance of the scores of single runs, by strategy of at least two seeds.

    Of a cross-validation these are the runs of the folds, each scored on its own rows.

    A strategy whose seeds all give the same predictions, as most baselines do, has no variance and
    does not inform those of the others.

    Args:
        strategies: all strategies of a study.
        metric: the metric that scores are compared in.
        test: the test set.
    """
    several = [each for each in strategies if each.seeds > 1]
    varying = [each for each in several if not each.fixed]
    own = [_run_variance(each, metric, test) for each in varying]
    rows = len(test.targets) / max([each.n_folds for each in varying], default=1)
    level = usual_variance(metric, rows)
    found = moderate([each.variance for each in own], [each.df for each in own], level)
    names = [each.strategy for each in varying]
    return dict.fromkeys((each.strategy for each in several), FIXED) | {
        name: SeedVariance(float(variance), float(df))
        for name, variance, df in zip(names, *found, strict=True)
    }


def _run_variance(summary: StrategySummary, metric: Metric, test: TestSet) -> SeedVariance:
    """The variance of a strategy's own runs, not moderated."""
    if summary.n_folds == 1:
        return SeedVariance(float(np.var(summary.scores, ddof=1)), summary.seeds - 1)
    about = summary.predictions, summary.folds, test.n_classes
    return run_variance(metric, test.targets, *about)


def judge(
    best: StrategySummary,
    others: Sequence[StrategySummary],
    pairs: Sequence[Paired],
    metric: Metric,
    tolerance: float,
    alpha: float = ALPHA,
) -> list[Comparison]:
    """The second half of `compare`: a finding for each difference.

    Args:
        best: the strategy with the best mean.
        others: the strategies that it is compared with.
        pairs: the difference for each of them, from `pair_up`.
        metric: the metric that scores are compared in.
        tolerance: how much worse is still good enough.
        alpha: the error of all findings together.
    """
    dfs = [pair.spread.df for pair in pairs]
    levels = [adjusted_level(alpha, len(others), df) for df in dfs]
    adjusted = zip(
        steps_p([_or_one(pair.p) for pair in pairs], dfs),
        steps_p([_or_one(pair.p_value(tolerance)) for pair in pairs], dfs),
        holm([_or_one(welch(best.scores, other.scores).p) for other in others]),
        strict=True,
    )
    return [
        _comparison(best, other, pair, metric, tolerance, level, p, p[1] <= alpha)
        for other, pair, level, p in zip(others, pairs, levels, adjusted, strict=True)
    ]


def _paired(
    best: StrategySummary,
    other: StrategySummary,
    test: TestSet,
    metric: Metric,
    noise: Mapping[str, SeedVariance],
) -> Paired:
    a, b = (best, other) if metric.higher_is_better else (other, best)
    known = a.strategy in noise and b.strategy in noise
    seeds = (noise[a.strategy], noise[b.strategy]) if known else None
    sides = a.predictions, b.predictions
    return paired_bootstrap(
        metric, test.targets, *sides, test.n_classes, seeds=seeds, folds=best.n_folds
    )


def _comparison(
    best: StrategySummary,
    other: StrategySummary,
    pair: Paired,
    metric: Metric,
    tolerance: float,
    level: float,
    adjusted: tuple[float, float, float],
    is_decided: bool,
) -> Comparison:
    low, high = pair.interval(1 - level)
    verdict: Finding = "open"
    if is_decided and pair.difference > tolerance:
        verdict, low = "credibly worse", max(low, tolerance)
    elif is_decided:
        verdict, high = "as good", min(high, tolerance)
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
        welch_p_adjusted=float(adjusted[2]),
        effect_size=metric.sign * hedges_g(best.scores, other.scores),
        seed_sd=pair.seed_sd,
        example_sd=pair.example_sd,
        more_seeds=more,
        test_rows=rows,
    )


def _or_one(p: float) -> float:
    """A p-value; 1 where it is not known."""
    return 1.0 if math.isnan(p) else p


def _needed(pair: Paired, tolerance: float, level: float) -> tuple[int | None, int | None]:
    """How many more seeds should settle an open comparison, or how many test rows could."""
    fewest = min(pair.spread.n_seeds)
    if not pair.spread.is_known:
        start = SEEDS_TO_START if pair.spread.folds == 1 else REPETITIONS_TO_START
        return start - fewest, None
    needed = seeds_needed(pair, abs(pair.difference - tolerance), 1 - level)
    more = None if needed.seeds is None else max(1, needed.seeds - fewest)
    return more, needed.examples
