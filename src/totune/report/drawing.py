"""Figure data drawn as inline SVG: the same bytes for the same data.

Pictures are small, so that they stay legible side by side and, on a narrow screen, below another.
"""

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from totune.report import formatting
from totune.report.canvas import STYLE, as_svg, axis_label, color_of, sheet
from totune.report.figures import BoxFigure, CostFigure, CurveLine, CurvePanel, Curves, Group
from totune.report.labels import HEIGHT, place_labels

_DURATIONS = (0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)
_COST_SHEET = (270.0, 190.0)  # points, about what its axes leave of the cost picture
_LETTERS = 36  # of a phase's name, side by side in a panel of learning curves


def draw_boxes(figure: BoxFigure) -> str:
    """Runs as points, one line per strategy; quartile boxes where there are enough runs."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 0.75 + 0.52 * len(figure.groups))
        for at, group in enumerate(figure.groups):
            color = color_of(group.strategy, figure.strategies)
            _draw_group(axes, at, group, color)
            _draw_odd(axes, at, group.odd, figure, color)
        axes.set_yticks(range(len(figure.groups)), [group.strategy for group in figure.groups])
        axes.set_ylim(len(figure.groups) - 0.4, -0.6)
        axes.set_xlim(*figure.limits)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(axis_label(figure.metric))
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        return as_svg(canvas, f"{formatting.metric_label(figure.metric)} of every run")


def _draw_group(axes: Axes, at: int, group: Group, color: str) -> None:
    if group.box is not None:
        quartile, median, upper = group.box
        axes.barh(at, upper - quartile, 0.46, quartile, color=color, alpha=0.18, linewidth=0)
        axes.plot([median, median], [at - 0.23, at + 0.23], color=color, linewidth=2)
    if group.low is not None and group.high is not None:
        axes.plot([group.low, group.high], [at + 0.31] * 2, color=color, linewidth=1.2, alpha=0.7)
    if group.mean is not None:
        axes.plot([group.mean], [at + 0.31], marker="|", markersize=7, color=color)
    heights = [at + _nudge(number) for number in range(len(group.values))]
    axes.scatter(group.values, heights, s=26, color=color, edgecolors="white", linewidths=0.7)


def _draw_odd(axes: Axes, at: int, odd: Sequence[float], figure: BoxFigure, color: str) -> None:
    """Degenerate runs as crosses; one outside the scale stands at its edge, with its value."""
    low, high = figure.limits
    for value in odd:
        if low <= value <= high:
            axes.scatter([value], [at], s=30, marker="x", color=color)
            continue
        left = value < low
        axes.annotate(
            f"× {value:.1f}" if formatting.is_bounded(figure.metric) else f"× {value:.3g}",
            (0 if left else 1, at),
            xycoords=("axes fraction", "data"),
            ha="left" if left else "right",
            va="center",
            color=color,
            fontsize=9,
        )


def _nudge(number: int) -> float:
    """A fixed zigzag, so that equal values do not hide each other."""
    return (0.0, -0.1, 0.1)[number % 3]


def draw_curves(figure: Curves, panel: CurvePanel) -> str:
    """One strategy's dev metric by epoch, one line per seed; the axis of scores is shared."""
    color = color_of(panel.strategy, figure.strategies)
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(3.1, 2.5)
        for line in panel.lines:
            _draw_line(axes, line, color)
        _draw_phases(axes, panel)
        axes.set_title(panel.strategy, loc="left", fontsize=11, color=color, fontweight="bold")
        axes.set_ylim(*figure.limits)
        axes.set_xlim(0.5, panel.epochs + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("Epoch")
        axes.set_ylabel(axis_label(figure.metric))
        axes.grid(axis="y")
        return as_svg(canvas, f"Learning curves of {panel.strategy}")


def _draw_line(axes: Axes, line: CurveLine, color: str) -> None:
    at = range(1, len(line.dev) + 1)
    axes.plot(at, line.dev, color=color, linewidth=1.5, linestyle="--" if line.odd else "-")
    if any(value is not None for value in line.train):
        shown = [math.nan if value is None else value for value in line.train]
        axes.plot(at, shown, color=color, linewidth=1, linestyle=(0, (1, 1.6)), alpha=0.7)
    if line.best is not None:
        axes.scatter([line.best], [line.dev[line.best - 1]], s=24, color=color, zorder=3)


def _draw_phases(axes: Axes, panel: CurvePanel) -> None:
    """A thin line where a phase begins, with its name where all names have room.

    Nothing when there is one phase.
    """
    if len(panel.phases) < 2:
        return
    ends = [start for _, start in panel.phases[1:]] + [panel.epochs]
    room = _LETTERS / panel.epochs
    named = all(
        len(name) <= room * (end - start)
        for (name, start), end in zip(panel.phases, ends, strict=True)
    )
    for name, start in panel.phases:
        if start:
            axes.axvline(start + 0.5, color="#9aa4ae", linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            name if named else "",
            (start + 0.5, 0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8.5,
            color="#66717c",
        )


def draw_costs(figure: CostFigure) -> str:
    """Mean training time (log scale) against the mean metric with its interval."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.4)
        axes.set_xscale("log")
        for point in figure.points:
            color = color_of(point.strategy, figure.strategies)
            if point.low is not None and point.high is not None:
                axes.plot([point.seconds] * 2, [point.low, point.high], color=color, linewidth=2)
            axes.scatter([point.seconds], [point.mean], s=46, color=color, zorder=3)
        axes.set_ylim(*figure.limits)
        _time_axis(axes, [point.seconds for point in figure.points])
        _name_points(axes, figure)
        axes.set_xlabel("Mean training time per run, features included (log scale)")
        axes.set_ylabel(axis_label(figure.metric))
        axes.grid()
        return as_svg(canvas, "Cost against quality")


def _name_points(axes: Axes, figure: CostFigure) -> None:
    """Every strategy's name near its point, with a thin line to it where it stands further off."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    width, height = _COST_SHEET
    places = [
        (
            width * math.log(point.seconds / left) / math.log(right / left),
            height * (point.mean - bottom) / (top - bottom),
        )
        for point in figure.points
    ]
    widths = [6.6 * len(point.strategy) for point in figure.points]
    offsets = place_labels(places, widths, (width, height + 2 * HEIGHT))  # some stand above
    for point, offset in zip(figure.points, offsets, strict=True):
        color = color_of(point.strategy, figure.strategies)
        far = {"arrowstyle": "-", "color": color, "linewidth": 0.7}
        axes.annotate(
            point.strategy,
            (point.seconds, point.mean),
            xytext=offset,
            textcoords="offset points",
            color=color,
            fontweight="bold",
            arrowprops=far if abs(offset[1] + HEIGHT / 2) > HEIGHT else None,
        )


def _time_axis(axes: Axes, seconds: list[float]) -> None:
    """Ticks at times that people say, with room for the labels on the right."""
    low, high = min(seconds) / 2, max(seconds) * 2
    axes.set_xlim(low, high * (high / low) ** 0.3)
    axes.xaxis.set_major_locator(FixedLocator(_DURATIONS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_said))


def _said(seconds: float, _: int) -> str:
    return f"{seconds:g} s" if seconds < 60 else formatting.duration(seconds)
