"""Figures as plain data, computed from records before anything is drawn.

Bounded metrics are in points (x 100) here already: these are the numbers on the axes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from totune.advice.summary import StrategySummary, known_values
from totune.report.formatting import is_bounded
from totune.report.groups import best_first, by_strategy, summaries
from totune.runs.records import EpochRecord, RunRecord, StudyInfo
from totune.statistics import Summary

ENOUGH_FOR_A_BOX = 5


@dataclass(frozen=True)
class Group:
    """The runs of one strategy under one metric.

    Attributes:
        values: the values of usable runs that are not degenerate.
        odd: the values of degenerate runs, which are drawn as crosses.
        mean: over all usable runs, with its 95% interval (None for fewer than two).
        box: lower quartile, median and upper quartile, or None for fewer than five runs.
    """

    strategy: str
    values: tuple[float, ...]
    odd: tuple[float, ...]
    mean: float | None
    low: float | None
    high: float | None
    box: tuple[float, float, float] | None


@dataclass(frozen=True)
class BoxFigure:
    """Every run's test metric, strategies best first."""

    metric: str
    strategies: tuple[str, ...]
    groups: tuple[Group, ...]
    limits: tuple[float, float]


@dataclass(frozen=True)
class CurveLine:
    """One run: dev and, where measured, train values per epoch.

    Attributes:
        best: the epoch that was kept, counted from 1, or None.
        odd: the run is degenerate.
    """

    seed: int
    dev: tuple[float, ...]
    train: tuple[float | None, ...]
    best: int | None
    odd: bool


@dataclass(frozen=True)
class CurvePanel:
    """The learning curves of one strategy; `phases` are names with the epochs before each."""

    strategy: str
    lines: tuple[CurveLine, ...]
    phases: tuple[tuple[str, int], ...]

    @property
    def epochs(self) -> int:
        return max(len(line.dev) for line in self.lines)


@dataclass(frozen=True)
class Curves:
    """Learning curves of every strategy that trains in epochs, on one scale of scores."""

    metric: str
    strategies: tuple[str, ...]
    panels: tuple[CurvePanel, ...]
    limits: tuple[float, float]


@dataclass(frozen=True)
class CostPoint:
    """Mean seconds per run and mean test metric of one strategy."""

    strategy: str
    seconds: float
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CostFigure:
    """What quality costs, one point per strategy."""

    metric: str
    strategies: tuple[str, ...]
    points: tuple[CostPoint, ...]
    limits: tuple[float, float]


def box_figure(
    info: StudyInfo,
    records: Sequence[RunRecord],
    metric: str,
    standings: Sequence[StrategySummary] = (),
) -> BoxFigure | None:
    """Each strategy's test values of `metric`, or None when no run knows it.

    Args:
        info: of the study.
        records: its runs.
        metric: what is shown.
        standings: of the advice, if there is one; see `summaries`.
    """
    runs = by_strategy(info, records)
    told = summaries(info, runs, metric, standings)
    ordered = best_first(runs, info.metric)
    found = (_group(group, metric, told.get(group.strategy)) for group in ordered)
    groups = tuple(group for group in found if group.values or group.odd)
    if not groups:
        return None
    shown = _known(value for group in groups for value in (*group.values, group.mean))
    limits = _limits(
        metric, shown, _known(end for group in groups for end in (group.low, group.high))
    )
    return BoxFigure(metric, strategy_names(runs), groups, limits)


def _group(runs: StrategySummary, metric: str, found: Summary | None) -> Group:
    values = scale(metric, runs.values(metric))
    healthy = [run for run in runs.usable if not run.degenerate]
    mean, low, high = _ends(found, metric)
    box = None
    if len(values) >= ENOUGH_FOR_A_BOX:
        lower, median, upper = np.percentile(values, (25, 50, 75))
        box = (float(lower), float(median), float(upper))
    odd = scale(metric, known_values(runs.degenerate, metric))
    healthy_values = scale(metric, known_values(healthy, metric))
    return Group(runs.strategy, healthy_values, odd, mean, low, high, box)


def _limits(metric: str, values: Sequence[float], reach: Sequence[float]) -> tuple[float, float]:
    """An axis for `values` that shows `reach` too, but is not stretched out of shape by it.

    The interval of two seeds can be ten times as wide as all the differences one wants to see.
    """
    width = (max(values) - min(values)) or 0.05 * abs(values[0]) or 1.0
    low = max(min([*values, *reach]), min(values) - width)
    high = min(max([*values, *reach]), max(values) + width)
    margin = 0.05 * ((high - low) or width)
    top = 100 + margin if is_bounded(metric) else high + margin
    return low - margin, min(top, high + margin)


def learning_curves(info: StudyInfo, records: Sequence[RunRecord]) -> Curves | None:
    """The study's metric on dev after every epoch, or None when nothing trains in epochs."""
    runs = by_strategy(info, records)
    panels = tuple(
        _panel(group, info.metric)
        for group in best_first(runs, info.metric)
        if any(_dev(record, info.metric) for record in group.records)
    )
    if not panels:
        return None
    lines = [line for panel in panels for line in panel.lines]
    return Curves(info.metric, strategy_names(runs), panels, _curve_limits(lines))


def _curve_limits(lines: Sequence[CurveLine]) -> tuple[float, float]:
    """A scale for all panels; degenerate runs do not stretch it unless there are no others."""
    shown = [line for line in lines if not line.odd] or lines
    values = [value for line in shown for value in (*line.dev, *_known(line.train))]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _panel(runs: StrategySummary, metric: str) -> CurvePanel:
    lines = tuple(_line(run, metric) for run in runs.records if _dev(run, metric))
    longest = max(runs.records, key=lambda run: len(run.epochs))
    return CurvePanel(runs.strategy, lines, _phases(longest.epochs))


def _line(record: RunRecord, metric: str) -> CurveLine:
    train = [epoch.train.get(metric) for epoch in record.epochs]
    best = record.best_epoch if 1 <= record.best_epoch <= len(record.epochs) else None
    return CurveLine(
        record.seed,
        scale(metric, _dev(record, metric)),
        tuple(None if value is None else scale(metric, [value])[0] for value in train),
        best,
        bool(record.degenerate),
    )


def _dev(record: RunRecord, metric: str) -> list[float]:
    """The dev values by epoch (a gap is kept as NaN); empty when none is known."""
    values = [epoch.dev.get(metric, math.nan) for epoch in record.epochs]
    return values if any(math.isfinite(value) for value in values) else []


def _phases(epochs: Sequence[EpochRecord]) -> tuple[tuple[str, int], ...]:
    starts = [
        (epoch.phase, at)
        for at, epoch in enumerate(epochs)
        if at == 0 or epoch.phase != epochs[at - 1].phase
    ]
    return tuple(starts)


def cost_figure(
    info: StudyInfo, records: Sequence[RunRecord], standings: Sequence[StrategySummary] = ()
) -> CostFigure | None:
    """Mean seconds against the mean metric, or None when no strategy knows both."""
    runs = by_strategy(info, records)
    told = summaries(info, runs, info.metric, standings)
    points = tuple(
        CostPoint(group.strategy, seconds, mean, low, high)
        for group in runs
        for mean, low, high in [_ends(told.get(group.strategy), info.metric)]
        if (seconds := group.seconds()) and mean is not None
    )
    if not points:
        return None
    ends = _known(end for point in points for end in (point.low, point.high))
    limits = _limits(info.metric, [point.mean for point in points], ends)
    return CostFigure(info.metric, strategy_names(runs), points, limits)


def _ends(found: Summary | None, metric: str) -> tuple[float | None, float | None, float | None]:
    """Mean and 95% interval in the units of the axis."""
    if found is None:
        return None, None, None
    ends = scale(metric, (found.mean, found.low, found.high))
    mean, low, high = (value if math.isfinite(value) else None for value in ends)
    return mean, low, high


def scale(metric: str, values: Sequence[float]) -> tuple[float, ...]:
    """Values as axes and tables show them: points of a bounded metric."""
    return tuple(100 * value if is_bounded(metric) else value for value in values)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def strategy_names(runs: Sequence[StrategySummary]) -> tuple[str, ...]:
    """Every strategy, so that each has its colour whichever of them a figure shows."""
    return tuple(group.strategy for group in runs)
