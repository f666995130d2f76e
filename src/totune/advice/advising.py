"""The advice: verdict, comparisons, and the sentences that tell them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.advice import wording
from totune.advice.comparing import Comparison, Raced, compare, find_best
from totune.advice.deciding import Verdict, decide, find_smallest
from totune.advice.effort import tell_effort
from totune.advice.plain import finite
from totune.advice.standings import Arrays, Entrant, Standing, TestSet, find_test_set, gather
from totune.advice.undertraining import find_undertrained
from totune.errors import ConfigError
from totune.metrics import PADDING, Metric, get_metric
from totune.runs.records import RunRecord
from totune.search.records import SearchRecord

TOLERANCE = 0.005
_ROUNDING = 1e-12  # the mean of equal scores may be off by that


@dataclass(frozen=True)
class Doubtful:
    """Strategies that scores alone do not settle.

    Attributes:
        floor: what the best constant answer scores, times the metric's sign.
        constant: those that do not beat it.
        undertrained: those that are possibly under-trained, each with the setting that trains it
            longer.
    """

    floor: float
    constant: set[str]
    undertrained: dict[str, str]


@dataclass(frozen=True)
class Advice:
    """What a study comes to, as plain data.

    Attributes:
        verdict: "recommended"; "undecided" while a cheaper strategy may keep up, or one that is
            possibly under-trained may be better; "none" if nothing can be recommended (no scored
            run, no rival, nothing beats a constant answer).
        headline: answers "to tune or not to tune?", and says what would settle an undecided case.
        metric: the name of the metric compared on, in whose scale all numbers are.
        tolerance: how much worse than the best is still good enough.
        recommended: the strategy to use, or None.
        best: the strategy with the best mean, or None without a scored run.
        provisional: the recommended strategy, or the one to use until the open ones are settled, or
            None where all give a constant answer.
        standings: every strategy's runs, scores and costs, by name.
        comparisons: every other scored strategy against the best, by name.
        more_seeds: if undecided, how many more seeds per strategy should decide, or None.
        test_rows: if undecided and seeds cannot decide, the least number of test rows that could.
        reasons: sentences on scores.
        costs: sentences on time and storage.
        caveats: sentences on what may spoil the advice.
        smallest: a strategy that keeps up with the best and stores at most a fifth of what the
            provisional one does, the least of all that keep up; None where there is none.
        effort: sentences on how hard options were searched.
        undertrained: by strategy that is possibly under-trained, the setting that trains it longer.
    """

    verdict: Verdict
    headline: str
    metric: str
    tolerance: float
    recommended: str | None
    best: str | None
    provisional: str | None
    standings: tuple[Standing, ...]
    comparisons: tuple[Comparison, ...]
    more_seeds: int | None
    test_rows: int | None
    reasons: tuple[str, ...]
    costs: tuple[str, ...]
    caveats: tuple[str, ...]
    smallest: str | None = None
    effort: tuple[str, ...] = ()
    undertrained: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it: numbers that are not finite become None."""
        return {name: finite(value) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        """The answer, and below it why, at what cost and effort, with which reservations."""
        told = (*self.reasons, *self.costs, *self.effort, *self.caveats)
        return "\n".join([self.headline, *told])


def advise(
    records: Sequence[RunRecord],
    arrays: Arrays,
    metric: str,
    tolerance: float = TOLERANCE,
    searches: Sequence[SearchRecord] = (),
    raced: Raced | None = None,
) -> Advice:
    """Recommends the cheapest strategy not credibly worse than the best by over the tolerance.

    Cost is the mean of training and feature seconds per run; of equals, less storage is cheaper.
    Failed runs are left out of means, and counted; degenerate runs are results like any other, but
    what does not beat a constant answer is never recommended. Where a strategy is possibly
    under-trained nothing found against it is credible, and the study is undecided. The order of the
    records does not matter.

    Args:
        records: the runs of a study, all on the same test set.
        arrays: by run fingerprint, `targets` [N] (below 0 for a label never seen in training),
            `predictions` [N] (class indices or numbers) and, for classes, `scores` [N, C]; codes
            of tags in both, [N, W], where words are tagged; a failed run may have none.
        metric: a name in `totune.metrics.METRICS`.
        tolerance: in the metric's own scale; 0.005 is half a point of accuracy.
        searches: whose winners the runs are.
        raced: what a race has found already. It is not tested again, since the race has shared the
            chance of error out over its looks.

    Raises:
        ConfigError: for an unknown metric or a tolerance below 0.
        DataError: if the runs were scored on different test rows.
    """
    if not tolerance >= 0:
        raise ConfigError(f"The tolerance is {tolerance}; it must be 0 or more.")
    measure = get_metric(metric)
    test = find_test_set(arrays)
    standings, entrants = gather(records, arrays, test, measure)
    effort = tuple(tell_effort(searches, standings))
    if not entrants:
        return replace(_nothing(standings, metric, tolerance), effort=effort)
    best = _best(entrants, measure, raced)
    doubtful = find_doubtful(records, entrants, best, test, measure)
    constant, undertrained = doubtful.constant, doubtful.undertrained
    others = [entrant for entrant in entrants if entrant is not best]
    known = {comparison.strategy: comparison for comparison in raced.comparisons} if raced else {}
    rest = [entrant for entrant in others if entrant.strategy not in known]
    known |= {c.strategy: c for c in compare(best, rest, test, measure, tolerance)}
    comparisons = [as_trained(known[other.strategy], undertrained) for other in others]
    decision = decide(best, others, comparisons, constant, undertrained)
    smallest = find_smallest(decision, _without(entrants, constant), comparisons)
    basis = wording.Basis(measure, tolerance, doubtful.floor * measure.sign, undertrained)
    return Advice(
        verdict=decision.verdict,
        headline=wording.headline(decision, basis),
        metric=metric,
        tolerance=tolerance,
        recommended=_name(decision.provisional) if decision.verdict == "recommended" else None,
        best=best.strategy,
        provisional=_name(decision.provisional),
        standings=tuple(standings),
        comparisons=tuple(comparisons),
        more_seeds=decision.more_seeds,
        test_rows=decision.test_rows,
        reasons=tuple(wording.reasons(best, comparisons, basis)),
        costs=tuple(wording.costs(decision, _without(entrants, constant), smallest, basis)),
        caveats=tuple(wording.caveats(standings, decision, constant, test.targets, basis)),
        smallest=_name(smallest),
        effort=effort,
        undertrained=undertrained,
    )


def _score(entrant: Entrant, metric: Metric) -> float:
    """The mean, higher being better."""
    return metric.sign * entrant.standing.mean


def _name(entrant: Entrant | None) -> str | None:
    return None if entrant is None else entrant.strategy


def _without(entrants: Sequence[Entrant], left_out: Collection[str]) -> list[Entrant]:
    return [entrant for entrant in entrants if entrant.strategy not in left_out]


def find_doubtful(
    records: Sequence[RunRecord],
    entrants: Sequence[Entrant],
    best: Entrant,
    test: TestSet,
    metric: Metric,
) -> Doubtful:
    """Who does not beat a constant answer, and who is possibly under-trained.

    What is not yet half as far above a constant answer as the best is counts as weak; see
    `find_undertrained`.
    """
    floor = _constant_score(test, metric)
    scores = {entrant.strategy: _score(entrant, metric) for entrant in entrants}
    constant = {name for name, score in scores.items() if score <= floor + _ROUNDING}
    half = floor + (_score(best, metric) - floor) / 2
    weak = {name for name, score in scores.items() if score < half}
    return Doubtful(floor, constant, find_undertrained(records, weak | constant, metric))


def as_trained(comparison: Comparison, undertrained: Collection[str]) -> Comparison:
    """A finding, which is not credible where the strategy might only need longer training."""
    if comparison.strategy in undertrained and comparison.verdict == "credibly worse":
        return replace(comparison, verdict="worse as trained")
    return comparison


def _best(entrants: Sequence[Entrant], metric: Metric, raced: Raced | None) -> Entrant:
    """The best of a race, where there was one, else that of the means."""
    named = [entrant for entrant in entrants if raced and entrant.strategy == raced.best]
    return named[0] if named else find_best(entrants, metric)


def _nothing(standings: Sequence[Standing], metric: str, tolerance: float) -> Advice:
    return Advice(
        verdict="none",
        headline="No verdict: no run is usable.",
        metric=metric,
        tolerance=tolerance,
        recommended=None,
        best=None,
        provisional=None,
        standings=tuple(standings),
        comparisons=(),
        more_seeds=None,
        test_rows=None,
        reasons=(),
        costs=(),
        caveats=tuple(wording.lost(standings)),
    )


def _constant_score(test: TestSet, metric: Metric) -> float:
    """What the best constant answer scores, times the metric's sign."""
    answers = _constants(test.targets, metric)
    return max(metric.sign * metric(test.targets, answer, test.n_classes) for answer in answers)


def _constants(targets: NDArray[Any], metric: Metric) -> Iterator[NDArray[Any]]:
    """Answers that do not look at the text: each class (of integers), or the mean target."""
    if targets.dtype.kind not in "iu":
        yield np.full(len(targets), targets.mean())
        return
    padding = (targets == PADDING) & metric.per_word
    for value in np.unique(np.maximum(targets[~padding], 0)):
        yield np.where(padding, PADDING, value).astype(targets.dtype)
