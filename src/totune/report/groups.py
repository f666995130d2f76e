"""The runs of a study gathered per strategy: what tables and figures both start from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from totune.advice.standings import Standing
from totune.metrics import METRICS
from totune.runs.records import Costs, RunRecord, StudyInfo
from totune.statistics import Summary, moderated_summaries


@dataclass(frozen=True)
class Runs:
    """The runs of one strategy, in the order of their seeds."""

    strategy: str
    records: tuple[RunRecord, ...]

    @property
    def usable(self) -> tuple[RunRecord, ...]:
        """The runs that count in means: all that finished, as in the advice."""
        return tuple(record for record in self.records if record.status == "finished")

    @property
    def failed(self) -> tuple[RunRecord, ...]:
        return tuple(record for record in self.records if record.status == "failed")

    @property
    def degenerate(self) -> tuple[RunRecord, ...]:
        """The usable runs that give one answer for every row."""
        return tuple(record for record in self.usable if record.degenerate)

    def values(self, metric: str) -> list[float]:
        """The test values that are known, one per usable run."""
        return known_values(self.usable, metric)

    def mean(self, metric: str) -> float | None:
        """The mean test value over runs, or None when no run knows the metric."""
        values = self.values(metric)
        return fmean(values) if values else None

    def cost(self, name: str) -> float | None:
        """The mean of one field of `Costs` over the runs that know it."""
        found = [float(getattr(costs, name)) for costs in self._costs()]
        known = [value for value in found if math.isfinite(value)]
        return fmean(known) if known else None

    def seconds(self) -> float | None:
        """Mean wall seconds per run: training and the features it had to compute."""
        found = [costs.train_seconds + costs.feature_seconds for costs in self._costs()]
        return fmean(found) if found else None

    def _costs(self) -> list[Costs]:
        return [record.costs for record in self.usable if record.costs is not None]


def known_values(records: Sequence[RunRecord], metric: str) -> list[float]:
    """The finite test values of `metric` among `records`."""
    found = (record.test.get(metric) for record in records)
    return [value for value in found if value is not None and math.isfinite(value)]


def by_strategy(info: StudyInfo, records: Sequence[RunRecord]) -> list[Runs]:
    """One group per strategy, in the order asked for; strategies found only in records come last.

    A strategy that has not run yet has a group too, an empty one.
    """
    order = dict.fromkeys([*info.strategies, *(record.strategy for record in records)])
    return [
        Runs(
            name,
            tuple(sorted((r for r in records if r.strategy == name), key=lambda run: run.seed)),
        )
        for name in order
    ]


def summaries(
    info: StudyInfo, groups: Sequence[Runs], metric: str, standings: Sequence[Standing] = ()
) -> dict[str, Summary]:
    """Mean, spread and interval of every strategy that knows a test metric, as in the advice.

    Args:
        info: of the study, which tells how many rows its test set has.
        groups: all its strategies, since their spreads over seeds inform each other's.
        metric: a name in `totune.metrics.METRICS`.
        standings: of the advice, which know whether seeds change predictions; without them, equal
            scores count as equal predictions.
    """
    known = {group.strategy: group.values(metric) for group in groups if group.values(metric)}
    alike = {standing.strategy for standing in standings if standing.fixed}
    fixed = [name in alike for name in known] if standings else None
    rows = (info.data.get("rows") or {}).get("test")
    found = moderated_summaries(list(known.values()), METRICS[metric], rows, fixed)
    return dict(zip(known, found, strict=True))


def unit_of(metric: str) -> str:
    """What a test set holds many of under a metric: examples, or sentences of tagged words."""
    known = METRICS.get(metric)
    return "sentences" if known is not None and known.per_word else "examples"


def best_first(groups: Sequence[Runs], metric: str) -> list[Runs]:
    """The groups by their mean of `metric`, best first; those without a value last."""

    def rank(group: Runs) -> float:
        mean = group.mean(metric)
        return math.inf if mean is None else -METRICS[metric].sign * mean

    return sorted(groups, key=rank)
