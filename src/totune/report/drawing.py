"""Figure data drawn as inline SVG: the same bytes for the same data.

Pictures are small, so that they stay legible side by side and, on a narrow screen, below another.
"""

import math
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from totune.report import formatting
from totune.report.figures import BoxFigure, CostFigure, CurveLine, CurvePanel, Curves, Group

# Okabe and Ito's palette, which every common kind of colour vision tells apart; the light yellow
# is left out because it vanishes on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
_INK = "#26303a"
_FAINT = "#d5dae0"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "totune",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "grid.color": "#eceff2",
    "grid.linewidth": 0.9,
}
_DURATIONS = (0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)


def color_of(strategy: str, strategies: Sequence[str]) -> str:
    """The colour a strategy has in every picture of a report."""
    return PALETTE[list(strategies).index(strategy) % len(PALETTE)]


def draw_boxes(figure: BoxFigure) -> str:
    """Runs as points, one line per strategy; quartile boxes where there are enough runs."""
    with mpl.rc_context(_STYLE):
        canvas, axes = _sheet(4.7, 0.75 + 0.52 * len(figure.groups))
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
        return _svg(canvas, f"{formatting.metric_label(figure.metric)} of every run")


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
    with mpl.rc_context(_STYLE):
        canvas, axes = _sheet(3.1, 2.5)
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
        return _svg(canvas, f"Learning curves of {panel.strategy}")


def _draw_line(axes: Axes, line: CurveLine, color: str) -> None:
    at = range(1, len(line.dev) + 1)
    axes.plot(at, line.dev, color=color, linewidth=1.5, linestyle="--" if line.odd else "-")
    if any(value is not None for value in line.train):
        shown = [math.nan if value is None else value for value in line.train]
        axes.plot(at, shown, color=color, linewidth=1, linestyle=(0, (1, 1.6)), alpha=0.7)
    if line.best is not None:
        axes.scatter([line.best], [line.dev[line.best - 1]], s=24, color=color, zorder=3)


def _draw_phases(axes: Axes, panel: CurvePanel) -> None:
    """A thin line where a phase begins, with its name; nothing when there is one phase."""
    if len(panel.phases) < 2:
        return
    for name, start in panel.phases:
        if start:
            axes.axvline(start + 0.5, color="#9aa4ae", linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            name,
            (start + 0.5, 0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8.5,
            color="#66717c",
        )


def draw_costs(figure: CostFigure) -> str:
    """Mean training time (log scale) against the mean metric with its interval."""
    with mpl.rc_context(_STYLE):
        canvas, axes = _sheet(4.7, 3.4)
        axes.set_xscale("log")
        for point in figure.points:
            color = color_of(point.strategy, figure.strategies)
            if point.low is not None and point.high is not None:
                axes.plot([point.seconds] * 2, [point.low, point.high], color=color, linewidth=2)
            axes.scatter([point.seconds], [point.mean], s=46, color=color, zorder=3)
            axes.annotate(
                point.strategy,
                (point.seconds, point.mean),
                xytext=(8, 5),
                textcoords="offset points",
                color=color,
                fontweight="bold",
            )
        axes.set_ylim(*figure.limits)
        _time_axis(axes, [point.seconds for point in figure.points])
        axes.set_xlabel("Mean training time per run, features included (log scale)")
        axes.set_ylabel(axis_label(figure.metric))
        axes.grid()
        return _svg(canvas, "Cost against quality")


def _time_axis(axes: Axes, seconds: list[float]) -> None:
    """Ticks at times that people say, with room for the labels on the right."""
    low, high = min(seconds) / 2, max(seconds) * 2
    axes.set_xlim(low, high * (high / low) ** 0.3)
    axes.xaxis.set_major_locator(FixedLocator(_DURATIONS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_said))


def _said(seconds: float, _: int) -> str:
    return f"{seconds:g} s" if seconds < 60 else formatting.duration(seconds)


def axis_label(metric: str) -> str:
    """A metric's name, with its unit where values are points."""
    unit = ", points" if formatting.is_bounded(metric) else ""
    return f"{formatting.metric_label(metric)}{unit}"


def _sheet(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def _svg(figure: Figure, title: str) -> str:
    """The figure as an `<svg>` element for a page.

    Matplotlib names its groups alike in every picture, so names that nothing refers to are
    removed: on one page they would clash (the others are hashes of what they name). Sizes become
    those of the picture in CSS pixels.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'#([^")]+)["\)]', text))
    text = re.sub(
        r'(<\w+) id="([^"]+)"', lambda found: found[0] if found[2] in used else found[1], text
    )
    width, height = figure.get_size_inches() * 96
    head = f'<svg role="img" aria-label="{escape(title)}" width="{width:.0f}" height="{height:.0f}"'
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening).replace("<svg", head, 1)
    return f"{opening}>{rest}".strip()
