"""Rows drawn as pictures of a page: `lines`, `scatter`, `boxes`, `bars` and `heatmap`.

A figure's data is a list of rows, mappings with the same keys, so that tests can read what a
picture shows. A primitive takes matplotlib axes, rows and the names of the columns to draw; None
and NaN leave a gap. Primitives go on top of each other. A figure takes five lines::

    with plots.picture("Probe score by block", 4.9, 3.9) as plot:
        plots.lines(plot.axes, rows, "block", "score", by="subject", color=colors)
        label_axes(plot.axes, x="Layer", y="Accuracy, points", ticks=13)
        plot.legend(columns=2)
    shown = Picture(plot.svg, "Accuracy on dev of a linear probe on each block.")

What else the axes say is in `totune.report.axes`: levels, phases, logarithmic scales. A strategy
has one colour in a whole report: `colors_of`. A bounded metric is in points on every axis: `scale`
and `axis_label`. Equal rows give equal bytes. Matplotlib is imported when a picture is drawn.
Pictures are small, so that they stay legible side by side and on a narrow screen.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from totune.report import formatting
from totune.report.axes import DASHES, INK, Point, name_points, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]
Color = str | Mapping[Any, str]  # one for all, or one for each value of the column `by`
Ends = tuple[str, str]  # the columns with both ends of an interval

# Okabe and Ito's palette, which every common kind of colour vision tells apart; instead of the
# light yellow, which vanishes on white, stands the wine red of Tol's muted scheme.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#444444",
    "#882255",
)
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "totune",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": "#d5dae0",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "grid.color": "#eceff2",
    "grid.linewidth": 0.9,
}
# A heatmap's vermilion and blue, darker than the palette's, so that white letters are legible.
_WORSE, _EVEN, _BETTER = "#B34A00", "#f7f7f7", "#005A8F"
_SHADES = 47  # odd, so that 0 has a shade; from 49 on the scale beside would be a bitmap
_PRINTED = 12  # columns of a heatmap, up to which values stand in their cells
_DARK = 0.24  # relative luminance below which white letters have more contrast than ink


def colors_of(strategies: Iterable[str]) -> dict[str, str]:
    """The colour of each strategy in every picture of a report."""
    return {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(dict.fromkeys(strategies))}


def scale(metric: str, value: float | None) -> float | None:
    """A value as axes show it: a bounded metric in points; None where it is not known."""
    if value is None or not math.isfinite(value):
        return None
    return 100 * value if formatting.is_bounded(metric) else float(value)


def axis_label(metric: str) -> str:
    """A metric's name, with its unit where values are points."""
    unit = ", points" if formatting.is_bounded(metric) else ""
    return f"{formatting.metric_label(metric)}{unit}"


class Plot:
    """A picture that is being drawn; `svg` holds it once `picture` is left."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(self.figure)
        self.svg = ""

    @cached_property
    def axes(self) -> "Axes":
        """The axes of a picture of one panel."""
        return self.figure.add_subplot()

    def grid(self, rows: int, **options: Any) -> list["Axes"]:
        """Panels below each other, top first; options are those of `Figure.subplots`."""
        return list(self.figure.subplots(rows, squeeze=False, **options)[:, 0])

    def legend(self, columns: int = 1) -> None:
        """Below the picture, what has a label; nothing where nothing has one."""
        if any(axes.get_legend_handles_labels()[1] for axes in self.figure.axes):
            self.figure.legend(loc="outside lower left", ncols=columns, frameon=False, fontsize=8.5)


@contextmanager
def picture(title: str, width: float, height: float) -> Iterator[Plot]:
    """A plot to draw on, which has its SVG element after the block.

    Args:
        title: what the picture shows, for those who cannot see it.
        width: inches.
        height: inches.
    """
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        plot = Plot(width, height)
        yield plot
        plot.svg = _as_svg(plot, title)


def _as_svg(plot: Plot, title: str) -> str:
    """An `<svg>` element for a page.

    Matplotlib names its groups alike in every picture, so names that nothing refers to are
    removed: on one page they would clash (the others are hashes of what they name). Sizes become
    those of the picture in CSS pixels.
    """
    buffer = BytesIO()
    plot.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'#([^")]+)["\)]', text))
    text = re.sub(
        r'(<\w+) id="([^"]+)"', lambda found: found[0] if found[2] in used else found[1], text
    )
    width, height = plot.figure.get_size_inches() * 96
    head = f'<svg role="img" aria-label="{escape(title)}" width="{width:.0f}" height="{height:.0f}"'
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening).replace("<svg", head, 1)
    return f"{opening}>{rest}".strip()


def lines(
    axes: "Axes",
    rows: Rows,
    x: str,
    y: str,
    *,
    by: str = "",
    color: Color = INK,
    style: str = "solid",
    label: str = "",
    width: float = 1.5,
    marker: float = 0.0,
    alpha: float = 1.0,
    band: Ends | None = None,
    interval: Ends | None = None,
    step: bool = False,
) -> None:
    """A line per value of the column `by`, through its rows in their order.

    Args:
        axes: to draw on.
        rows: the data.
        x: the column of places.
        y: the column of heights.
        by: the column that names the lines; "" for one line.
        color: of all lines, or of each value of `by`; then each line has its name in the legend.
        style: a key of `DASHES`.
        label: in the legend, once for all lines.
        width: of the line, in points.
        marker: the size of a dot on each row, in points.
        alpha: opacity.
        band: columns of the ends of a shaded band.
        interval: columns of the ends of an upright stroke on each row.
        step: whether a height holds up to the next row, without a slope.
    """
    for name, own in _grouped(rows, by):
        shade = color if isinstance(color, str) else color[name]
        places = _numbers(own, x)
        axes.plot(
            places,
            _numbers(own, y),
            color=shade,
            linewidth=width,
            linestyle=DASHES[style],
            marker="o" if marker else "",
            markersize=marker,
            alpha=alpha,
            label=label or (None if isinstance(color, str) else str(name)),
            drawstyle="steps-post" if step else "default",
        )
        label = label and "_"  # matplotlib leaves names with an underscore out of legends
        if band is not None:
            low, high = (_numbers(own, end) for end in band)
            axes.fill_between(places, low, high, color=shade, alpha=0.16, linewidth=0)
        if interval is not None:
            _strokes(axes, own, x, interval, shade)


def scatter(
    axes: "Axes",
    rows: Rows,
    x: str,
    y: str,
    *,
    by: str = "",
    color: Color = INK,
    label: str = "",
    marker: str = "o",
    size: float = 26.0,
    alpha: float = 1.0,
    interval: Ends | None = None,
    names: str = "",
    clip: bool = True,
) -> None:
    """A mark per row.

    Args:
        axes: to draw on. Where points have names, limits must have been set.
        rows: the data.
        x: the column of places.
        y: the column of heights.
        by: the column whose values have colours of their own.
        color: of all marks, or of each value of `by`.
        label: in the legend.
        marker: as matplotlib calls it: "o", "x", "v".
        size: square points.
        alpha: opacity.
        interval: columns of the ends of an upright stroke.
        names: the column of names that stand beside the points, none over another.
        clip: whether what lies on the edge of the axes is cut off there.
    """
    edge = {"edgecolors": "white", "linewidths": 0.7} if marker != "x" else {"linewidths": 1.2}
    for name, own in _grouped(rows, by):
        shade = color if isinstance(color, str) else color[name]
        if interval is not None:
            _strokes(axes, own, x, interval, shade, width=2)
        axes.scatter(
            _numbers(own, x),
            _numbers(own, y),
            s=size,
            color=shade,
            marker=marker,
            alpha=alpha,
            label=label or None,
            zorder=3,
            clip_on=clip,
            **edge,
        )
        label = label and "_"
    if names:
        shades = [color if isinstance(color, str) else color[row[by]] for row in rows]
        name_points(axes, [(row[x], row[y]) for row in rows], [row[names] for row in rows], shades)


def boxes(
    axes: "Axes", rows: Rows, *, color: Mapping[str, str], limits: Point, digits: str = ".1f"
) -> None:
    """Samples as points, a group below another, with a box where quartiles are given.

    Args:
        axes: to draw on.
        rows: a group each: `name`; `values`; `odd`, values that are drawn as crosses, at the edge
            with their number where they lie outside the limits; `mean` with its interval from
            `low` to `high`, or None; `quartiles`, three, or None.
        color: of each name.
        limits: of the axis.
        digits: how a value at the edge is written.
    """
    for at, row in enumerate(rows):
        shade = color[row["name"]]
        if row["quartiles"] is not None:
            lower, median, upper = row["quartiles"]
            axes.barh(at, upper - lower, 0.46, lower, color=shade, alpha=0.18, linewidth=0)
            axes.plot([median, median], [at - 0.23, at + 0.23], color=shade, linewidth=2)
        if row["low"] is not None and row["high"] is not None:
            ends = [row["low"], row["high"]]
            axes.plot(ends, [at + 0.31] * 2, color=shade, linewidth=1.2, alpha=0.7)
        if row["mean"] is not None:
            axes.plot([row["mean"]], [at + 0.31], marker="|", markersize=7, color=shade)
        # A fixed zigzag, so that equal values do not hide each other.
        heights = [at + (0.0, -0.1, 0.1)[number % 3] for number in range(len(row["values"]))]
        axes.scatter(row["values"], heights, s=26, color=shade, edgecolors="white", linewidths=0.7)
        for value in row["odd"]:
            _draw_odd(axes, at, value, shade, limits, digits)
    axes.set_xlim(*limits)
    name_rows(axes, [row["name"] for row in rows])


def bars(
    axes: "Axes",
    rows: Rows,
    name: str,
    value: str,
    *,
    color: str = PALETTE[0],
    interval: Ends | None = None,
    mark: str = "",
) -> None:
    """A bar per row, the first on top.

    Args:
        axes: to draw on.
        rows: the data.
        name: the column of names.
        value: the column of lengths.
        color: of the bars.
        interval: columns of the ends of a thin line along each bar.
        mark: the column of values that stand as strokes across the bars.
    """
    for at, row in enumerate(rows):
        axes.barh(at, row[value], 0.55, color=color, alpha=0.75)
        if interval is not None:
            axes.plot([row[interval[0]], row[interval[1]]], [at, at], color=INK, linewidth=1.2)
        if mark:
            axes.plot([row[mark]] * 2, [at - 0.36, at + 0.36], color=PALETTE[1], linewidth=2)
    name_rows(axes, [row[name] for row in rows])


def heatmap(
    plot: Plot,
    rows: Rows,
    x: str,
    y: str,
    value: str,
    *,
    limit: float,
    label: str,
    low_is_bad: bool,
) -> None:
    """Shades that diverge from 0, a cell per row; values are printed where there is room.

    The plot gets the size that its cells need, `width` and `height` of `picture` do not count.

    Args:
        plot: to draw on.
        rows: the data, in the order of the axes: names come as they are met first.
        x: the column of names to the right.
        y: the column of names downwards.
        value: the column of shades; a cell of None stays empty.
        limit: the ends of the scale of shades, above and below 0.
        label: of that scale.
        low_is_bad: whether values below 0 have the colour of what is worse.
    """
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    axes = plot.axes
    across, down = (list(dict.fromkeys(row[name] for row in rows)) for name in (x, y))
    cells = np.full((len(down), len(across)), np.nan)
    for row in rows:
        cells[down.index(row[y]), across.index(row[x])] = _number(row[value])
    printed = len(across) <= _PRINTED
    side = max(2.2, (0.36 if printed else 0.24) * len(across))  # inches
    plot.figure.set_size_inches(side + 1.75, side * len(down) / len(across) + 0.95)
    ends = (_WORSE, _EVEN, _BETTER) if low_is_bad else (_BETTER, _EVEN, _WORSE)
    shades = LinearSegmentedColormap.from_list("change", ends, N=_SHADES)
    drawn = axes.pcolormesh(
        np.arange(len(across) + 1) - 0.5,
        np.arange(len(down) + 1) - 0.5,
        np.ma.masked_invalid(cells),
        norm=Normalize(-limit, limit),
        cmap=shades,
        edgecolors="white",
        linewidth=1,
    )
    for (row_at, column_at), number in np.ndenumerate(cells) if printed else ():
        if math.isfinite(number):
            ink = _letters_on(drawn.to_rgba(np.array([number]))[0])
            place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
            axes.text(column_at, row_at, _short(number), color=ink, **place)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.tick_params(length=0, labelsize=9 if printed else 7.5)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)
    bar = plot.figure.colorbar(drawn, ax=axes, shrink=0.8, aspect=18, label=label)
    bar.outline.set_visible(False)


def _draw_odd(
    axes: "Axes", at: float, value: float, color: str, limits: Point, digits: str
) -> None:
    low, high = limits
    if low <= value <= high:
        axes.scatter([value], [at], s=30, marker="x", color=color)
        return
    left = value < low
    axes.annotate(
        f"× {value:{digits}}",
        (0 if left else 1, at),
        xycoords=("axes fraction", "data"),
        ha="left" if left else "right",
        va="center",
        color=color,
        fontsize=9,
    )


def _strokes(
    axes: "Axes", rows: Rows, x: str, interval: Ends, color: str, width: float = 1.2
) -> None:
    for row in rows:
        ends = [_number(row[end]) for end in interval]
        if all(map(math.isfinite, ends)):
            axes.plot([row[x]] * 2, ends, color=color, linewidth=width)


def _grouped(rows: Rows, by: str) -> list[tuple[Any, Rows]]:
    """Rows by the values of a column, as they come."""
    if not by:
        return [("", rows)]
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    return list(groups.items())


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _numbers(rows: Rows, column: str) -> list[float]:
    return [_number(row[column]) for row in rows]


def _letters_on(color: Sequence[float]) -> str:
    """Ink or white, whichever has more contrast (WCAG's relative luminance of sRGB)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < _DARK else INK


def _short(value: float) -> str:
    """As many digits as a cell has room for, a true minus, and no sign on a zero."""
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return "0" if float(text) == 0 else text.replace("-", "−")
