"""Learning curves over sizes of the training set: as plain data, then drawn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from totune.report import formatting
from totune.report.canvas import STYLE, as_svg, axis_label, color_of, sheet
from totune.report.phase_figure import scale
from totune.statistics import summary

Rows = Sequence[Mapping[str, Any]]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """One strategy at one size; ends of the 95% interval over seeds are None for one seed."""

    size: int
    values: tuple[float, ...]
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LabelCurve:
    """One strategy over sizes; a bounded metric is in points."""

    strategy: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class LabelFigure:
    """Every strategy over sizes.

    Attributes:
        limits: of the axis of scores: all means and runs, and of the intervals what fits without
            making the rest small.
    """

    metric: str
    strategies: tuple[str, ...]
    sizes: tuple[int, ...]
    curves: tuple[LabelCurve, ...]
    limits: tuple[float, float]


def label_figure(rows: Rows, facts: Facts) -> LabelFigure:
    """The figure of these rows."""
    metric, sizes = facts["metric"], tuple(facts["sizes"])
    curves = []
    for strategy in facts["strategies"]:
        points = (_point(strategy, size, rows, metric) for size in sizes)
        curves.append(LabelCurve(strategy, tuple(p for p in points if p is not None)))
    shown = [value for curve in curves for point in curve.points for value in point.values]
    low, high = min(shown), max(shown)
    margin = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    limits = low - margin, high + margin
    return LabelFigure(metric, tuple(facts["strategies"]), sizes, tuple(curves), limits)


def draw_curves(figure: LabelFigure) -> str:
    """A line with a band per strategy over the logarithm of the size, and a dot per run."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.6)
        for curve in figure.curves:
            _draw_curve(axes, curve, color_of(curve.strategy, figure.strategies))
        axes.set_ylim(*figure.limits)
        axes.set_ylabel(axis_label(figure.metric))
        _draw_sizes(axes, figure.sizes)
        canvas.legend(loc="outside lower left", frameon=False, fontsize=8.5, ncols=2)
        return as_svg(canvas, f"{formatting.metric_label(figure.metric)} by training rows")


def draw_gains(facts: Facts) -> str:
    """Each pair's gain with its interval over the logarithm of the size; above zero tuning pays."""
    metric, pairs = facts["metric"], list(dict.fromkeys(gain["pair"] for gain in facts["gains"]))
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.6)
        axes.axhline(0, color="#66717c", linewidth=1)
        for place, pair in enumerate(pairs):
            own = [gain for gain in facts["gains"] if gain["pair"] == pair]
            _draw_gain(axes, own, metric, 1.05 ** (place - (len(pairs) - 1) / 2), place)
        axes.set_ylabel(f"Gain by tuning{', points' if formatting.is_bounded(metric) else ''}")
        _draw_sizes(axes, facts["sizes"])
        canvas.legend(loc="outside lower left", frameon=False, fontsize=8.5)
        return as_svg(canvas, "What tuning gains by training rows")


def _point(strategy: str, size: int, rows: Rows, metric: str) -> Point | None:
    own = [row for row in rows if row["strategy"] == strategy and row["size"] == size]
    values = scale(metric, [row["test"] for row in own if row["test"] is not None])
    if not values:
        return None
    found = summary(values)
    ends = [end if math.isfinite(end) else None for end in (found.low, found.high)]
    return Point(size, values, found.mean, *ends)


def _draw_curve(axes: Axes, curve: LabelCurve, color: str) -> None:
    sizes = [point.size for point in curve.points]
    axes.plot(sizes, [p.mean for p in curve.points], color=color, lw=1.6, label=curve.strategy)
    for point in curve.points:
        axes.scatter([point.size] * len(point.values), point.values, s=9, color=color, alpha=0.6)
    low = [math.nan if point.low is None else point.low for point in curve.points]
    high = [math.nan if point.high is None else point.high for point in curve.points]
    axes.fill_between(sizes, low, high, color=color, alpha=0.13, linewidth=0)


def _draw_gain(
    axes: Axes, gains: Sequence[Mapping[str, Any]], metric: str, shift: float, place: int
) -> None:
    color = ("#26303a", "#0072B2")[place % 2]
    sizes = [gain["size"] * shift for gain in gains]
    middles = scale(metric, [gain["gain"] for gain in gains])
    axes.plot(sizes, middles, color=color, marker="o", ms=4, lw=1.3, label=gains[0]["pair"])
    for size, gain in zip(sizes, gains, strict=True):
        if gain["low"] is not None:
            axes.plot([size] * 2, scale(metric, (gain["low"], gain["high"])), color=color, lw=1.1)


def _draw_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with the sizes as ticks, those that would touch the one before unnamed."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    whole = math.log10(sizes[-1] / sizes[0]) + 2 * math.log10(1.25)
    names, free = [], -math.inf
    for size in sizes:
        name, at = f"{size:,}", math.log10(size)
        width = 0.022 * len(name) * whole
        named = at - width / 2 >= free
        names.append(name if named else "")
        free = at + width / 2 if named else free
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(names)
    axes.set_xlabel("Training rows")
    axes.grid(axis="y")
