"""The interim analysis after a round: which strategy is best, which are eliminated, which stay.

A race is a group-sequential design. Its guarantee, for rules 1 and 2 (`rules.py`), which state
something about a strategy (3 says that nothing can be stated): with probability 95% no finding of
the whole race is wrong. Every analysis tests at 5% / analyses (Bonferroni), as a study does at 5%:
on intervals over seeds and test rows whose seed variances are moderated by those of all strategies,
eliminated ones included. A finding stays as it was when its strategy was eliminated.
`benchmarks/verdicts.py` simulates races in which everything is tested at every analysis; the
results are in `docs/verdicts.md`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from totune.advice.compare import ALPHA, Comparison, find_best, judge, pair_up
from totune.advice.screening import Screening, as_trained, screen
from totune.advice.summary import (
    Arrays,
    StrategySummary,
    TestSet,
    find_test_set,
    score_strategies,
)
from totune.metrics import get_metric
from totune.racing.records import Elimination, Reason
from totune.racing.rules import (
    LOST_ROUNDS,
    Rival,
    conditional_power,
    find_reasons,
    part_reasons,
)
from totune.runs.records import RunRecord


@dataclass(frozen=True)
class Design:
    """What is fixed before a race begins.

    Attributes:
        metric: name of the metric that decides.
        tolerance: how much worse than the best is still good enough.
        seeds: largest number of rounds on all training rows.
        analyses: largest number of interim analyses that test, over which the error is spent.
        alpha: error probability of all analyses together.
    """

    metric: str
    tolerance: float
    seeds: int
    analyses: int
    alpha: float = ALPHA

    @property
    def level(self) -> float:
        """The error probability of one analysis."""
        return self.alpha / self.analyses


@dataclass(frozen=True)
class InterimAnalysis:
    """The state after a round: the best, the eliminated, and comparisons of those that stay."""

    best: str | None
    eliminated: tuple[Elimination, ...]
    open: tuple[Comparison, ...]


def interim_analysis(
    racing: Collection[str],
    earlier: Mapping[str, Reason],
    records: Sequence[RunRecord],
    arrays: Arrays,
    design: Design,
    part: bool = False,
) -> InterimAnalysis:
    """Analyses the runs so far; plain data in and out.

    Args:
        racing: names of the strategies still in the race.
        earlier: reasons of earlier eliminations, by strategy.
        records: all runs so far on these training rows, those of eliminated strategies too.
        arrays: as `totune.advice.advise` takes them.
        design: the design of the race.
        part: whether the runs had only a part of the training rows.
    """
    metric = get_metric(design.metric)
    test = find_test_set(arrays)
    scored = [each for each in score_strategies(records, arrays, test, metric) if each.usable]
    inside = [each for each in scored if each.strategy in racing]
    lost = () if part else _lost(racing, inside, records)
    if not inside:
        return InterimAnalysis(None, lost, ())
    best = find_best(inside, metric)
    screening = screen(scored, best, test, metric)
    if best.strategy in screening.constant:
        screening = replace(screening, constant=set())
    outside = [each for each in scored if each.strategy not in racing]
    rivals = _find_rivals(best, inside, outside, test, design, screening)
    if part:
        reasons = part_reasons(best, rivals, metric.sign, screening.floor)
    else:
        final = len({record.seed for record in records}) >= design.seeds
        beating = [each for each in scored if each.strategy not in screening.constant]
        costs = {each.strategy: each.cost_order for each in beating}
        reasons = find_reasons(best, rivals, earlier, costs, final)
    gone = [each for each in rivals if each.strategy in reasons]
    eliminated = tuple(each.eliminate(best, reasons[each.strategy]) for each in gone)
    still = tuple(each.comparison for each in rivals if each.strategy not in reasons)
    return InterimAnalysis(best.strategy, (*lost, *eliminated), still)


def _find_rivals(
    best: StrategySummary,
    inside: Sequence[StrategySummary],
    outside: Sequence[StrategySummary],
    test: TestSet,
    design: Design,
    screening: Screening,
) -> list[Rival]:
    """The strategies in the race beside the best; those outside inform the seed variances."""
    metric = get_metric(design.metric)
    others = [each for each in inside if each is not best]
    pairs = pair_up(best, others, test, metric, known=outside)
    found = judge(best, others, pairs, metric, design.tolerance, design.level)
    adjusted = [_over_analyses(each, design.analyses) for each in found]
    return [
        Rival(
            summary=other,
            comparison=as_trained(comparison, screening.undertrained),
            power=conditional_power(
                pair, design.tolerance, design.seeds, design.level / len(others)
            ),
            cheaper=other.cost_order < best.cost_order,
            is_undertrained=other.strategy in screening.undertrained,
            is_constant=other.strategy in screening.constant,
        )
        for other, pair, comparison in zip(others, pairs, adjusted, strict=True)
    ]


def _over_analyses(comparison: Comparison, analyses: int) -> Comparison:
    """A comparison with p-values adjusted for all analyses, as its verdict is."""
    p, limit = (min(1.0, analyses * q) for q in (comparison.p_adjusted, comparison.p_tolerance))
    return replace(comparison, p_adjusted=p, p_tolerance=limit)


def _lost(
    racing: Collection[str], inside: Sequence[StrategySummary], records: Sequence[RunRecord]
) -> tuple[Elimination, ...]:
    """Rule 5: strategies without a usable run after all the rounds that they get for it."""
    usable = {each.strategy for each in inside}
    tried = Counter(record.strategy for record in records)
    return tuple(
        Elimination(strategy, "no usable run")
        for strategy in racing
        if strategy not in usable and tried[strategy] >= LOST_ROUNDS
    )
