"""The figures of one search drawn, small enough for three side by side."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from totune.report.canvas import STYLE, as_svg, axis_label, sheet
from totune.report.search_figures import (
    HistoryFigure,
    ImportanceFigure,
    OptionAxis,
    OptionsFigure,
    TrialLine,
)

_WIDTH = 3.1
_INK = "#26303a"
_FAINT = "#66717c"
_PALE = "#d5dae0"
_LEAST = 0.2  # how strong the colour of the worst trial is
_LETTERS = 40  # of all names side by side on one axis
_DOT: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.6}


def height_of(options: int) -> float:
    """Inches of all pictures of a search of so many options, so that they stand in a row."""
    return max(2.5, 0.75 + 0.34 * (options + 1))


def draw_history(figure: HistoryFigure, strategy: str, color: str, height: float) -> str:
    """The best score so far as a line, every trial as a dot, pruned ones as crosses."""
    low, high = figure.limits
    with mpl.rc_context(STYLE):
        canvas, axes = _sheet(strategy, color, height)
        _draw_defaults(axes, figure)
        axes.step(*_steps(figure), where="post", color=color, linewidth=1.6)
        for state, marker in (("complete", "o"), ("pruned", "x")):
            inside = [p for p in figure.points if p.state == state and low <= p.score <= high]
            style = {"s": 18, **_DOT} if marker == "o" else {"s": 20, "linewidths": 1}
            _dots(axes, [(p.at, p.score) for p in inside], color, marker, **style)
        edge, arrow = (low, "v") if figure.rises else (high, "^")
        beyond = [(p.at, edge) for p in figure.points if not low <= p.score <= high]
        _dots(axes, beyond, color, arrow, s=20, clip_on=False)
        if figure.winner is not None:
            axes.scatter(*figure.winner, s=46, color=color, zorder=4, **_DOT)
        axes.set_ylim(low, high)
        axes.set_xlim(0.5, figure.trials + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        axes.set_xlabel("Trial")
        axes.set_ylabel(axis_label(figure.metric))
        axes.grid(axis="y")
        return as_svg(canvas, f"Scores by trial of the search of {strategy}")


def _sheet(strategy: str, color: str, height: float) -> tuple[Figure, Axes]:
    canvas, axes = sheet(_WIDTH, height)
    # Axes of one picture differ much in the width of their names: the title keeps to the left.
    canvas.suptitle(strategy, x=0.02, ha="left", fontsize=11, color=color, fontweight="bold")
    return canvas, axes


def _dots(
    axes: Axes, places: Sequence[tuple[float, float]], color: str, marker: str, **style: Any
) -> None:
    across, up = [place[0] for place in places], [place[1] for place in places]
    axes.scatter(across, up, color=color, marker=marker, alpha=0.6, zorder=3, **style)


def _steps(figure: HistoryFigure) -> tuple[list[float], list[float]]:
    """The best so far, kept up to the last trial."""
    if not figure.best:
        return [], []
    places = [*figure.best, (figure.trials, figure.best[-1][1])]
    return [place[0] for place in places], [place[1] for place in places]


def _draw_defaults(axes: Axes, figure: HistoryFigure) -> None:
    """A line at the defaults' score; its name stands on the side where nothing better is."""
    if figure.defaults is None:
        return
    axes.axhline(figure.defaults, color=_FAINT, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        "defaults",
        (1, figure.defaults),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2.5 if figure.rises else 2.5),
        textcoords="offset points",
        ha="right",
        va="top" if figure.rises else "bottom",
        fontsize=8.5,
        color=_FAINT,
    )


def draw_importance(figure: ImportanceFigure, strategy: str, color: str, height: float) -> str:
    """A bar per option, or words where there is nothing to draw."""
    with mpl.rc_context(STYLE):
        canvas, axes = _sheet(strategy, color, height)
        names, shares = [name for name, _ in figure.bars], [share for _, share in figure.bars]
        axes.barh(range(len(names)), shares, 0.6, color=color, alpha=0.75)
        for at, share in enumerate(shares):
            text = f"{share:.0f}%" if share >= 0.5 or not share else "<1%"
            axes.annotate(
                text, (share, at), (3, 0), textcoords="offset points", va="center", fontsize=8.5
            )
        axes.set_yticks(range(len(names)), names, fontsize=8.5)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(max(len(names), 3) - 0.4, -0.6)
        axes.set_xlim(0, 1.22 * max([*shares, 1.0]))
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlabel("Importance")
        if figure.reason:
            axes.spines["left"].set_visible(False)
            axes.text(0.5, 0.5, figure.reason, transform=axes.transAxes, ha="center", color=_FAINT)
        return as_svg(canvas, f"Importance of the options of {strategy}")


def draw_options(figure: OptionsFigure, strategy: str, color: str, height: float) -> str:
    """Parallel coordinates that lie: an axis per row, a line per trial from top to bottom.

    One option is drawn as the score by its values.
    """
    shades = LinearSegmentedColormap.from_list("shades", (_PALE, color))
    with mpl.rc_context(STYLE):
        canvas, axes = _sheet(strategy, color, height)
        if len(figure.axes) == 2:
            _draw_single(axes, figure, shades)
        else:
            _draw_parallel(axes, figure, shades)
        return as_svg(canvas, f"Options of every trial of {strategy}")


def _draw_parallel(axes: Axes, figure: OptionsFigure, shades: LinearSegmentedColormap) -> None:
    rows = range(len(figure.axes))
    for line in figure.lines:
        axes.plot(_known(line.places), rows, **_style(line, shades))
    for row, axis in enumerate(figure.axes):
        axes.plot([0, 1], [row, row], color="#9aa4ae", linewidth=0.9, zorder=2.5)
        for place, name in _fitting(axis):
            _mark(axes, place, row, name)
    axes.set_yticks(rows, [axis.name for axis in figure.axes], fontsize=8.5)
    axes.set_ylim(len(rows) - 0.35, -0.25)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Options of every trial")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _mark(axes: Axes, place: float, row: int, name: str) -> None:
    side = "left" if place == 0 else "right" if place == 1 else "center"
    axes.plot([place], [row], marker="|", markersize=5, color="#9aa4ae", zorder=2.5)
    axes.annotate(
        name,
        (place, row),
        (0, -4),
        textcoords="offset points",
        ha=side,
        va="top",
        fontsize=7.5,
        color=_FAINT,
        zorder=5,
        bbox={"boxstyle": "square,pad=0.05", "color": "white", "alpha": 0.75, "linewidth": 0},
    )


def _fitting(axis: OptionAxis) -> list[tuple[float, str]]:
    """Marks with names that fit side by side: shortened, or the first and the last alone."""
    marks = list(axis.marks)
    if sum(len(name) + 1 for _, name in marks) <= _LETTERS:
        return marks
    room = _LETTERS // len(marks) - 1
    if room < 5:
        marks, room = [marks[0], marks[-1]], _LETTERS // 2 - 1
    return [(at, name if len(name) <= room else f"{name[: room - 1]}…") for at, name in marks]


def _draw_single(axes: Axes, figure: OptionsFigure, shades: LinearSegmentedColormap) -> None:
    score, option = figure.axes
    for line in figure.lines:
        up, across = _known(line.places)
        face = _INK if line.won else shades(_LEAST + (1 - _LEAST) * line.shade)
        marker = "x" if line.pruned else "o"
        style = {} if line.pruned else _DOT
        axes.scatter([across], [up], s=46 if line.won else 26, color=face, marker=marker, **style)
    axes.set_xticks([at for at, _ in option.marks], [name for _, name in option.marks])
    axes.set_yticks([at for at, _ in score.marks], [name for _, name in score.marks])
    axes.set_xlim(-0.06, 1.06)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(option.name[:1].upper() + option.name[1:])
    axes.set_ylabel(axis_label(figure.metric))


def _known(places: Sequence[float | None]) -> list[float]:
    return [math.nan if place is None else place for place in places]


def _style(line: TrialLine, shades: LinearSegmentedColormap) -> dict[str, Any]:
    if line.won:
        return {"color": _INK, "linewidth": 1.8, "marker": "o", "markersize": 4, "zorder": 4}
    width = 0.8 if line.pruned else 1.2
    return {"color": shades(_LEAST + (1 - _LEAST) * line.shade), "linewidth": width, "alpha": 0.8}
