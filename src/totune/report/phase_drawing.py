"""The phases of one strategy drawn: train and dev by epoch, and below them the gap."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from totune.report.canvas import STYLE, as_svg, axis_label, blank, color_of
from totune.report.formatting import is_bounded
from totune.report.phase_figure import PhaseFigure, PhaseLine

_LETTERS = 52  # of phases' names, side by side above the picture
_BOUNDARY: dict[str, Any] = {"color": "#9aa4ae", "linewidth": 0.9, "linestyle": (0, (4, 3))}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "dev": ("dev", {"linewidth": 1.5}),
    "train": ("train, dropout off", {"linewidth": 1.1, "linestyle": (0, (4, 1.5))}),
    "live": (
        "train, measured while training, dropout on",
        {"linewidth": 1.1, "linestyle": (0, (1, 1.6)), "alpha": 0.8},
    ),
}

_STOP: dict[str, Any] = {"color": "#b3261e", "marker": "x", "markersize": 6.5}


def draw_phases(figure: PhaseFigure) -> str:
    """A line per seed and kind of score; each phase begins at the same place for all seeds."""
    heights = (2.3, 1.3) if figure.has_gap else (2.4,)
    color = color_of(figure.strategy, figure.strategies)
    with mpl.rc_context(STYLE):
        canvas = blank(4.7, 1.4 + sum(heights))
        grid = canvas.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)
        every: list[Axes] = list(grid[:, 0])
        _draw_scores(every[0], figure, color)
        if figure.has_gap:
            _draw_gap(every[1], figure, color)
        _mark_phases(every, figure)
        every[-1].set_xlim(0.5, figure.epochs + 0.5)
        every[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
        every[-1].set_xlabel("Epoch")
        drawn = [kind for kind in _KINDS if _is_known(figure, kind)]
        handles = [Line2D([], [], color=color, label=_KINDS[k][0], **_KINDS[k][1]) for k in drawn]
        if any(line.stops for line in figure.lines):
            handles.append(Line2D([], [], linestyle="", label="the gap rule would stop", **_STOP))
        canvas.legend(handles=handles, loc="outside lower left", frameon=False, fontsize=8.5)
        return as_svg(canvas, f"Phases of {figure.strategy}")


def _is_known(figure: PhaseFigure, kind: str) -> bool:
    return any(value is not None for line in figure.lines for value in getattr(line, kind))


def _draw_scores(axes: Axes, figure: PhaseFigure, color: str) -> None:
    for line in figure.lines:
        for kind, (_, style) in _KINDS.items():
            _draw_line(axes, line.at, getattr(line, kind), color, **style)
        if line.kept is not None:
            dev = _heights(line.dev)[line.at.index(line.kept)]
            axes.scatter([line.kept], [dev], s=26, color=color, zorder=3)
        _mark_stops(axes, line, line.dev)
    axes.set_title(figure.strategy, loc="left", fontsize=11, color=color, fontweight="bold")
    axes.set_ylabel(axis_label(figure.metric))


def _draw_gap(axes: Axes, figure: PhaseFigure, color: str) -> None:
    """How far train leads dev, and the limit; one run crosses it and stops."""
    for line in figure.lines:
        gaps = [line.gap, line.live_gap] if line.live_gap else [line.gap]
        for gap, kind in zip(gaps, ("dev", "live"), strict=False):
            _draw_line(axes, line.at, gap, color, **_KINDS[kind][1])
            _mark_stops(axes, line, gap)
    axes.axhline(0, color="#9aa4ae", linewidth=0.8)
    if figure.gap_limit is not None:
        axes.axhline(figure.gap_limit, color="#b3261e", linewidth=1)
        place = (1.01, figure.gap_limit)
        text: dict[str, Any] = {"ha": "left", "va": "center", "fontsize": 8.5, "color": "#b3261e"}
        axes.annotate("limit", place, xycoords=("axes fraction", "data"), **text)
    if figure.gap_limits is not None:
        axes.set_ylim(*figure.gap_limits)
    axes.set_ylabel("Gap, points" if is_bounded(figure.metric) else "Gap")


def _draw_line(
    axes: Axes, at: Sequence[int], values: Sequence[float | None], color: str, **style: Any
) -> None:
    """Points too, since a phase of one epoch has no line."""
    axes.plot(at, _heights(values), color=color, marker="o", markersize=2.2, **style)


def _mark_stops(axes: Axes, line: PhaseLine, values: Sequence[float | None]) -> None:
    at = [line.at.index(stop) for stop in line.stops]
    heights = _heights(values)
    axes.plot(line.stops, [heights[one] for one in at], linestyle="", zorder=4, **_STOP)


def _heights(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _mark_phases(every: Sequence[Axes], figure: PhaseFigure) -> None:
    """A line where a phase begins; above the picture its name, upright where there is no room."""
    for axes in every:
        axes.grid(axis="y")
        for span in figure.spans[1:]:
            axes.axvline(span.start + 0.5, **_BOUNDARY)
    room = _LETTERS / figure.epochs
    fits = all(len(span.name) <= room * span.epochs for span in figure.spans)
    above = every[0].secondary_xaxis("top")
    middles = [span.start + (span.epochs + 1) / 2 for span in figure.spans]
    above.set_xticks(middles, [span.name for span in figure.spans])
    above.tick_params(length=0, labelsize=8.5, labelcolor="#66717c", rotation=0 if fits else 90)
    above.spines["top"].set_visible(False)
