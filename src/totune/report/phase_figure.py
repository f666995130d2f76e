"""Training phase by phase as plain data: train and dev after every epoch, and the gap between."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from totune.advice.summary import StrategySummary
from totune.metrics import METRICS
from totune.report.figures import scale, strategy_names
from totune.report.groups import best_first, by_strategy
from totune.runs.records import EpochRecord, RunRecord, StudyInfo

Plan = list[tuple[str, list[EpochRecord]]]  # a run's phases: their names and epochs


@dataclass(frozen=True)
class PhaseSpan:
    """Where a phase lies on the axis of epochs: so many epochs after the first `start`."""

    name: str
    start: int
    epochs: int


@dataclass(frozen=True)
class PhaseLine:
    """One run; every sequence has a value per epoch, None where it is not known.

    Attributes:
        at: the place of each epoch on the axis, from 1: each phase begins at the same place for
            all runs.
        dev: after the epoch.
        train: after the epoch too, dropout off.
        live: on train too, but measured while training, dropout on; only where `train` is unknown.
        gap: how far `train` is better than `dev`.
        kept: the place of the epoch that was kept, or None.
        live_gap: how far `live` is, where that is asked.
        stops: the places after which a rule would end a phase.
    """

    seed: int
    at: tuple[int, ...]
    dev: tuple[float | None, ...]
    train: tuple[float | None, ...]
    live: tuple[float | None, ...]
    gap: tuple[float | None, ...]
    kept: int | None
    live_gap: tuple[float | None, ...] = ()
    stops: tuple[int, ...] = ()


@dataclass(frozen=True)
class PhaseFigure:
    """The usable runs of one strategy; bounded metrics are in points.

    Attributes:
        gap_limit: how large a gap ends a phase, or None where none does.
        gap_limits: of the axis of gaps, or None for one that fits this strategy.
    """

    metric: str
    strategy: str
    strategies: tuple[str, ...]
    spans: tuple[PhaseSpan, ...]
    lines: tuple[PhaseLine, ...]
    gap_limit: float | None
    gap_limits: tuple[float, float] | None = None

    @property
    def epochs(self) -> int:
        return self.spans[-1].start + self.spans[-1].epochs

    @property
    def has_gap(self) -> bool:
        return any(
            value is not None for line in self.lines for value in (*line.gap, *line.live_gap)
        )


def phased(info: StudyInfo, records: Sequence[RunRecord]) -> list[StrategySummary]:
    """The strategies of several phases or with a stop that compares train with dev, best first."""
    groups = best_first(by_strategy(info, records), info.metric)
    return [group for group in groups if any(_is_phased(run) for run in group.usable)]


def _is_phased(run: RunRecord) -> bool:
    return len(phases_of(run)) > 1 or any(epoch.train_after for epoch in run.epochs)


def phases_of(run: RunRecord) -> Plan:
    """The epochs of each phase, in order."""
    return [(name, list(found)) for name, found in groupby(run.epochs, lambda epoch: epoch.phase)]


def longest_plan(plans: Sequence[Plan]) -> Plan:
    """The phases of the run that has most of them; all runs of a strategy follow one plan."""
    return max(plans, key=lambda plan: len(plan))


def phase_figures(info: StudyInfo, records: Sequence[RunRecord]) -> list[PhaseFigure]:
    """A figure per strategy of `phased`."""
    names = strategy_names(by_strategy(info, records))
    return [_figure(group, info.metric, names) for group in phased(info, records)]


def _figure(group: StrategySummary, metric: str, names: tuple[str, ...]) -> PhaseFigure:
    runs = [run for run in group.usable if run.epochs]
    spans = _spans(runs)
    lines = tuple(_line(run, spans, metric) for run in runs)
    return PhaseFigure(metric, group.strategy, names, spans, lines, _gap_limit(runs[0], metric))


def _spans(runs: Sequence[RunRecord]) -> tuple[PhaseSpan, ...]:
    """Every phase as wide as the run needs that stays in it longest."""
    plans = [phases_of(run) for run in runs]
    spans: list[PhaseSpan] = []
    for place, (name, _) in enumerate(longest_plan(plans)):
        longest = max(len(plan[place][1]) for plan in plans if place < len(plan))
        start = spans[-1].start + spans[-1].epochs if spans else 0
        spans.append(PhaseSpan(name, start, longest))
    return tuple(spans)


def _line(run: RunRecord, spans: Sequence[PhaseSpan], metric: str) -> PhaseLine:
    places = tuple(
        span.start + number
        for span, (_, epochs) in zip(spans, phases_of(run), strict=False)
        for number in range(1, len(epochs) + 1)
    )
    dev = [epoch.dev.get(metric) for epoch in run.epochs]
    train = [epoch.train_after.get(metric) for epoch in run.epochs]
    live = [None if epoch.train_after else epoch.train.get(metric) for epoch in run.epochs]
    sign = METRICS[metric].sign
    gap = [
        None if one is None or other is None else sign * (one - other)
        for one, other in zip(train, dev, strict=True)
    ]
    kept = places[run.best_epoch - 1] if 1 <= run.best_epoch <= len(places) else None
    return PhaseLine(
        run.seed,
        places,
        dev=shown(metric, dev),
        train=shown(metric, train),
        live=shown(metric, live),
        gap=shown(metric, gap),
        kept=kept,
    )


def shown(metric: str, values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Values as they are drawn, those of bounded metrics in points."""
    return tuple(None if value is None else scale(metric, [value])[0] for value in values)


def _gap_limit(run: RunRecord, metric: str) -> float | None:
    """The strategy's own limit, from the run's configuration, where its stop looked at the gap."""
    limit = run.config.get("strategy", {}).get("options", {}).get("gap_tolerance")
    compares = any(epoch.train_after for epoch in run.epochs)
    return scale(metric, [limit])[0] if compares and limit is not None else None
