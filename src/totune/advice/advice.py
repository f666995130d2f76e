"""The advice: verdict, comparisons, and the sentences that explain them."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from totune.advice import wording
from totune.advice.compare import Comparison, RaceFindings, compare, find_best
from totune.advice.decide import Verdict, decide, find_smallest
from totune.advice.effort import describe_effort
from totune.advice.screening import as_trained, screen
from totune.advice.summary import (
    Arrays,
    StrategySummary,
    find_test_set,
    finite,
    score_strategies,
)
from totune.errors import ConfigError
from totune.metrics import Metric, get_metric
from totune.registry import out_of_range
from totune.runs.records import RunRecord
from totune.search.records import SearchRecord

TOLERANCE = 0.005


@dataclass(frozen=True)
class Advice:
    """The answer of a study, as data and in words.

    Attributes:
        verdict: "recommended"; "undecided" while a cheaper strategy may keep up, or one that is
            possibly under-trained may be better; "none" if nothing can be recommended (no scored
            run, no rival, nothing beats a constant answer).
        headline: answer to "to tune or not to tune?", with what would settle an undecided case.
        metric: name of the metric compared on, in whose scale all numbers are.
        tolerance: how much worse than the best is still good enough.
        recommended: name of the strategy to use, or None.
        best: name of the strategy with the best mean, or None without a scored run.
        provisional: name of the recommended strategy, or of the one to use until the open ones are
            settled; where all give a constant answer on the test rows the best that has read
            texts, or None.
        standings: summaries of all strategies, by name.
        comparisons: those of every other scored strategy with the best, by name.
        more_seeds: if undecided, number of further seeds per strategy that should decide, or None.
        test_rows: if undecided and seeds cannot decide, least number of test rows that could.
        reasons: sentences on scores.
        costs: sentences on time and storage.
        caveats: sentences with reservations.
        smallest: name of a strategy that keeps up with the best and stores at most a fifth of what
            the provisional one does, the least of all that keep up; None where there is none.
        effort: sentences on the search for options.
        doubts: if undecided, sentences on what is open, and what would settle it.
        undertrained: by strategy that is possibly under-trained, the setting that trains it longer.
    """

    verdict: Verdict
    headline: str
    metric: str
    tolerance: float
    recommended: str | None
    best: str | None
    provisional: str | None
    standings: tuple[StrategySummary, ...]
    comparisons: tuple[Comparison, ...]
    more_seeds: int | None
    test_rows: int | None
    reasons: tuple[str, ...]
    costs: tuple[str, ...]
    caveats: tuple[str, ...]
    smallest: str | None = None
    effort: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    undertrained: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it: numbers that are not finite become None."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["standings"] = [each.to_json() for each in self.standings]
        plain["comparisons"] = [asdict(each) for each in self.comparisons]
        return {name: finite(value) for name, value in plain.items()}

    def __str__(self) -> str:
        """The answer, and below it the reasons, costs, effort and reservations."""
        lines = (self.headline, *self.reasons, *self.costs, *self.effort, *self.caveats)
        return "\n".join(lines)


def advise(
    records: Sequence[RunRecord],
    arrays: Arrays,
    metric: str,
    tolerance: float = TOLERANCE,
    searches: Sequence[SearchRecord] = (),
    raced: RaceFindings | None = None,
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
        searches: those whose winners the runs are.
        raced: the findings of a race, which are not tested again: the race has spent the error
            probability on its interim analyses.

    Raises:
        ConfigError: for an unknown metric or a tolerance below 0.
        DataError: if the runs were scored on different test rows.
    """
    if not tolerance >= 0:
        raise ConfigError(out_of_range("tolerance", tolerance, "at least 0"))
    measure = get_metric(metric)
    test = find_test_set(arrays)
    summaries = score_strategies(records, arrays, test, measure)
    effort = tuple(describe_effort(searches, summaries))
    scored = [each for each in summaries if each.usable]
    if not scored:
        return replace(_no_advice(summaries, metric, tolerance), effort=effort)
    best = _best(scored, measure, raced)
    screening = screen(scored, best, test, measure)
    constant, undertrained = screening.constant, screening.undertrained
    others = [each for each in scored if each is not best]
    known = {comparison.strategy: comparison for comparison in raced.comparisons} if raced else {}
    rest = [each for each in others if each.strategy not in known]
    known |= {c.strategy: c for c in compare(best, rest, test, measure, tolerance)}
    comparisons = [as_trained(known[other.strategy], undertrained) for other in others]
    decision = decide(best, others, comparisons, constant, undertrained)
    beating = _without(scored, constant)
    smallest = find_smallest(decision, beating, comparisons)
    floor = screening.floor * measure.sign
    basis = wording.Basis(measure, tolerance, floor, undertrained, best.n_folds)
    return Advice(
        verdict=decision.verdict,
        headline=wording.headline(decision, basis),
        metric=metric,
        tolerance=tolerance,
        recommended=_name(decision.provisional) if decision.verdict == "recommended" else None,
        best=best.strategy,
        provisional=_name(decision.provisional),
        standings=tuple(summaries),
        comparisons=tuple(comparisons),
        more_seeds=decision.more_seeds,
        test_rows=decision.test_rows,
        reasons=tuple(wording.reasons(best, comparisons, basis)),
        costs=tuple(wording.costs(decision, beating, smallest, basis)),
        caveats=tuple(wording.caveats(summaries, decision, constant, test.targets, basis)),
        smallest=_name(smallest),
        effort=effort,
        doubts=tuple(wording.doubts(decision, basis)),
        undertrained=undertrained,
    )


def _name(summary: StrategySummary | None) -> str | None:
    return None if summary is None else summary.strategy


def _without(
    summaries: Sequence[StrategySummary], left_out: Collection[str]
) -> list[StrategySummary]:
    return [each for each in summaries if each.strategy not in left_out]


def _best(
    strategies: Sequence[StrategySummary], metric: Metric, raced: RaceFindings | None
) -> StrategySummary:
    """The best strategy of a race, if there was one, else that with the best mean."""
    named = [each for each in strategies if raced and each.strategy == raced.best]
    return named[0] if named else find_best(strategies, metric)


def _no_advice(summaries: Sequence[StrategySummary], metric: str, tolerance: float) -> Advice:
    return Advice(
        verdict="none",
        headline="No verdict: no run is usable.",
        metric=metric,
        tolerance=tolerance,
        recommended=None,
        best=None,
        provisional=None,
        standings=tuple(summaries),
        comparisons=(),
        more_seeds=None,
        test_rows=None,
        reasons=(),
        costs=(),
        caveats=tuple(wording.lost(summaries)),
    )
