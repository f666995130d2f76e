"""A look at a race after a round: who is best, who leaves (`rules.py`), who stays.

The guarantee, for rules 1 and 2, which say something about a strategy (3 says that nothing can be
said): with probability 95% no finding of the whole race is wrong. Every look tests at 5% / looks
(Bonferroni), as a study does at 5%: on intervals over seeds and test rows whose seed variances are
moderated by those of all strategies, also of those that left. A finding stays as it was when its
strategy left. `benchmarks/verdicts.py` simulates races in which all is tested at every look;
`docs/verdicts.md` holds what it found.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from totune.advice.advising import as_trained, find_doubtful
from totune.advice.comparing import ALPHA, Comparison, find_best, judge, pair_up
from totune.advice.standings import Arrays, Entrant, find_test_set, gather
from totune.metrics import get_metric
from totune.racing.forecast import Forecast, forecast
from totune.racing.records import Departure, Reason
from totune.racing.rules import LOST_ROUNDS, Rival, departure, find_reasons, part_reasons
from totune.runs.records import RunRecord
from totune.statistics import Paired


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
    gone_before = [entrant for entrant in entrants if entrant.strategy not in racing]
    pairs = pair_up(best, others, test, metric, known=gone_before)
    found = judge(best, others, pairs, metric, terms.tolerance, terms.level)
    doubtful = find_doubtful(records, entrants, best, test, metric)
    constant = set() if best.strategy in doubtful.constant else doubtful.constant
    found = [as_trained(_over_looks(each, terms.looks), doubtful.undertrained) for each in found]
    rivals = [
        Rival(
            other,
            comparison,
            other.standing.cost < best.standing.cost,
            _forecast(pair, len(others), terms),
            is_undertrained=other.strategy in doubtful.undertrained,
            is_constant=other.strategy in constant,
        )
        for other, pair, comparison in zip(others, pairs, found, strict=True)
    ]
    if part:
        reasons = part_reasons(best, rivals, metric.sign, doubtful.floor)
    else:
        final = len({record.seed for record in records}) >= terms.seeds
        costs = {e.strategy: e.standing.cost for e in entrants if e.strategy not in constant}
        reasons = find_reasons(best, rivals, left, costs, final)
    gone = tuple(departure(best, rival, reasons) for rival in rivals if rival.strategy in reasons)
    still = tuple(comparison for comparison in found if comparison.strategy not in reasons)
    return Look(best.strategy, (*lost, *gone), still)


def _over_looks(comparison: Comparison, looks: int) -> Comparison:
    """The same with p-values for all looks, as its verdict is."""
    p, limit = (min(1.0, looks * q) for q in (comparison.p_adjusted, comparison.p_tolerance))
    return replace(comparison, p_adjusted=p, p_tolerance=limit)


def _forecast(pair: Paired, others: int, terms: Terms) -> Forecast:
    """What the last look would find."""
    return forecast(pair, terms.tolerance, terms.seeds, terms.level / others)


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
