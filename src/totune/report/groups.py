"""The strategies of a study in the order and with the scores that tables and figures show."""

import math
from collections.abc import Sequence

from totune.advice.summary import StrategySummary, summarize
from totune.metrics import METRICS
from totune.runs.records import RunRecord, StudyInfo
from totune.statistics import Summary, moderated_summaries


def by_strategy(info: StudyInfo, records: Sequence[RunRecord]) -> list[StrategySummary]:
    """A summary per strategy, in the order asked for; one that has not run yet has no runs."""
    return summarize(records, info.strategies)


def summaries(
    info: StudyInfo,
    groups: Sequence[StrategySummary],
    metric: str,
    standings: Sequence[StrategySummary] = (),
) -> dict[str, Summary]:
    """Mean, spread and interval of every strategy that knows a test metric, as in the advice.

    Args:
        info: the study, with the number of its test rows.
        groups: all its strategies, since their spreads over seeds inform each other's.
        metric: a name in `totune.metrics.METRICS`.
        standings: those of the advice, which say whether seeds change predictions; without them,
            equal scores count as equal predictions.
    """
    known = {group.strategy: group.values(metric) for group in groups if group.values(metric)}
    alike = {standing.strategy for standing in standings if standing.fixed}
    fixed = [name in alike for name in known] if standings else None
    sizes = info.data.get("rows") or {}
    rows = sizes.get("all", sizes.get("test"))
    found = moderated_summaries(list(known.values()), METRICS[metric], rows, fixed)
    return dict(zip(known, found, strict=True))


def unit_of(metric: str) -> str:
    """The rows of a test set under a metric: examples, or sentences of tagged words."""
    known = METRICS.get(metric)
    return "sentences" if known is not None and known.per_word else "examples"


def best_first(groups: Sequence[StrategySummary], metric: str) -> list[StrategySummary]:
    """The strategies by their mean of `metric`, best first; those without a value last."""

    def rank(group: StrategySummary) -> float:
        mean = group.mean(metric)
        return math.inf if mean is None else -METRICS[metric].sign * mean

    return sorted(groups, key=rank)
