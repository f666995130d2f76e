"""A look at a race after a round: who is best, who leaves (`rules.py`), who stays.

The guarantee, for rules 1 and 2, which say something about a strategy (3 says that nothing can be
said): with probability 95% no finding of the whole race is wrong. Every look tests at 5% / looks
(Bonferroni), by Holm's procedure over its strategies, on intervals over seeds and test rows whose
noise of seeds is pooled (`noise.py`). A finding stays as it was when its strategy left.

Checked by simulation (accuracy 85%, 300 and 1,000 rows of shared difficulty, 4 to 8 strategies,
all equal or behind by exactly the tolerance, noise of seeds from none to 3 points and unequal, 400
races each): where rule 3 is left out, so that all is tested at every look, something was found
worse wrongly in 0 to 2.5%; with the others just beyond a tolerance of 3 points (1,000 and 3,000
rows, 300 races each), something kept up wrongly in 0 to 0.3%. `benchmarks/racing.py` and a unit
test repeat a part.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from totune.advice.advising import constant_score
from totune.advice.comparing import ALPHA, Comparison, find_best, judge, pair_up
from totune.advice.standings import Arrays, Entrant, find_test_set, gather
from totune.metrics import Metric, get_metric
from totune.racing.forecast import Forecast, forecast
from totune.racing.noise import WORTH, Noise, find_noise
from totune.racing.records import Departure, Reason
from totune.racing.rules import LOST_ROUNDS, Rival, departure, find_reasons, part_reasons
from totune.statistics import Paired
from totune.study.records import RunRecord


@dataclass(frozen=True)
class Terms:
    """What is decided before a race begins.

    Attributes:
        metric: that decides.
        tolerance: how much worse than the best is still good enough.
        seeds: how many rounds on all training rows there are at the most.
        looks: how often is tested at the most, so how many parts the error is shared out into.
        alpha: the error of all looks together.
    """

    metric: str
    tolerance: float
    seeds: int
    looks: int
    alpha: float = ALPHA

    @property
    def level(self) -> float:
        """The error of one look."""
        return self.alpha / self.looks


@dataclass(frozen=True)
class Look:
    """What is seen after a round: the best, who leaves, and how the others stand."""

    best: str | None
    left: tuple[Departure, ...]
    open: tuple[Comparison, ...]


def look(
    racing: Collection[str],
    left: Mapping[str, Reason],
    records: Sequence[RunRecord],
    arrays: Arrays,
    terms: Terms,
    part: bool = False,
) -> Look:
    """Looks at the runs so far; plain data in and out.

    Args:
        racing: strategies still in the race.
        left: why others have left it.
        records: all runs so far on these training rows, also of strategies that left.
        arrays: as `totune.advice.advise` takes them.
        terms: of the race.
        part: whether the runs had a part of the training rows alone.
    """
    metric = get_metric(terms.metric)
    test = find_test_set(arrays)
    _, entrants = gather(records, arrays, test, metric)
    inside = [entrant for entrant in entrants if entrant.strategy in racing]
    lost = () if part else _lost(racing, inside, records)
    if not inside:
        return Look(None, lost, ())
    best = find_best(inside, metric)
    others = [entrant for entrant in inside if entrant is not best]
    pairs = _pairs(best, others, pair_up(best, others, test, metric), metric, find_noise(entrants))
    found = judge(best, others, pairs, metric, terms.tolerance, terms.level)
    found = [_over_looks(comparison, terms.looks) for comparison in found]
    rivals = [
        Rival(
            other,
            comparison,
            other.standing.cost < best.standing.cost,
            _forecast(pair, len(others), terms),
        )
        for other, pair, comparison in zip(others, pairs, found, strict=True)
    ]
    if part:
        reasons = part_reasons(best, rivals, metric.sign, constant_score(test, metric))
    else:
        final = len({record.seed for record in records}) >= terms.seeds
        costs = {entrant.strategy: entrant.standing.cost for entrant in entrants}
        reasons = find_reasons(best, rivals, left, costs, final)
    gone = tuple(departure(best, rival, reasons) for rival in rivals if rival.strategy in reasons)
    still = tuple(comparison for comparison in found if comparison.strategy not in reasons)
    return Look(best.strategy, (*lost, *gone), still)


def _pairs(
    best: Entrant,
    others: Sequence[Entrant],
    pairs: Sequence[Paired],
    metric: Metric,
    noise: Noise | None,
) -> list[Paired]:
    """The differences with the noise of all strategies instead of two."""
    if noise is None:
        return list(pairs)
    ordered = 1 if metric.higher_is_better else -1
    return [
        noise.on(pair, *(best.strategy, other.strategy)[::ordered])
        for other, pair in zip(others, pairs, strict=True)
    ]


def _over_looks(comparison: Comparison, looks: int) -> Comparison:
    """The same with p-values for all looks, as its verdict is."""
    p, limit = (min(1.0, looks * q) for q in (comparison.p_adjusted, comparison.p_tolerance))
    return replace(comparison, p_adjusted=p, p_tolerance=limit)


def _forecast(pair: Paired, others: int, terms: Terms) -> Forecast:
    """What the last look would find."""
    df = max(1.0, WORTH * (others + 1) * (terms.seeds - 1))
    return forecast(pair, terms.tolerance, terms.seeds, df, terms.level / others)


def _lost(
    racing: Collection[str], inside: Sequence[Entrant], records: Sequence[RunRecord]
) -> tuple[Departure, ...]:
    """Those that have had their chances and no usable run."""
    usable = {entrant.strategy for entrant in inside}
    tried = Counter(record.strategy for record in records)
    return tuple(
        Departure(strategy, "no usable run")
        for strategy in racing
        if strategy not in usable and tried[strategy] >= LOST_ROUNDS
    )
