"""What the axes of a picture say: names, limits, levels, phases, and labels beside points."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

INK, GREY, LINE, RED = "#26303a", "#66717c", "#9aa4ae", "#b3261e"
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (4, 1.5)),
    "dotted": (0, (1, 1.6)),
    "dash-dotted": (0, (4, 1.6, 1, 1.6)),
}
LABEL_HEIGHT = 12.0  # points
_LETTER = 6.6  # points that a letter of a point's name takes


def label_axes(
    axes: "Axes",
    *,
    x: str = "",
    y: str = "",
    xlim: Point | None = None,
    ylim: Point | None = None,
    ticks: int = 0,
    grid: str = "y",
) -> None:
    """Names, limits and grid of both axes.

    Args:
        axes: to draw on.
        x: name of the axis of places; "" leaves it as it is.
        y: likewise of heights.
        xlim: ends of the axis of places; without them they follow from what is drawn.
        ylim: likewise of heights.
        ticks: at most so many along x, on whole numbers; 0 leaves them as they are.
        grid: "x", "y", "both", or "" for none.
    """
    from matplotlib.ticker import MaxNLocator

    if x:
        axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)
    if xlim is not None:
        axes.set_xlim(*xlim)
    if ylim is not None:
        axes.set_ylim(*ylim)
    if ticks:
        axes.xaxis.set_major_locator(MaxNLocator(ticks, integer=True, min_n_ticks=1))
    if grid:
        axes.grid(axis=grid)  # type: ignore[arg-type]


def add_heading(axes: "Axes", text: str, color: str = INK) -> None:
    """A bold title over the axes, on the left."""
    axes.set_title(text, loc="left", fontsize=11, color=color, fontweight="bold")


def draw_level(
    axes: "Axes",
    height: float,
    *,
    color: str = LINE,
    style: str = "solid",
    label: str = "",
    name: str = "",
    inside: str = "",
) -> None:
    """A line across the axes at one height.

    Args:
        axes: to draw on.
        height: of the line.
        color: of the line and its name.
        style: a key of `DASHES`.
        label: in the legend.
        name: right of the line.
        inside: "top" or "bottom": the name's edge that touches the line, within the axes.
    """
    axes.axhline(height, color=color, linewidth=1, linestyle=DASHES[style], label=label or None)
    if name:
        axes.annotate(
            name,
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(0, {"top": -2.5, "bottom": 2.5}[inside]) if inside else (3, 0),
            textcoords="offset points",
            ha="right" if inside else "left",
            va=inside or "center",
            fontsize=8.5,
            color=color,
        )


def log_axis(axes: "Axes", ticks: Mapping[float, str], limits: Point) -> None:
    """Makes the axis of places logarithmic.

    Args:
        axes: to draw on.
        ticks: places with their names, in order; a name that would touch the one before is left
            out.
        limits: ends of the axis.
    """
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(*limits)
    letter = 0.022 * math.log10(limits[1] / limits[0])
    names, free = [], -math.inf
    shown = {at: name for at, name in ticks.items() if limits[0] <= at <= limits[1]}
    for place, name in shown.items():
        at, half = math.log10(place), letter * len(name) / 2
        names.append(name if at - half >= free else "")
        free = at + half if names[-1] else free
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(names)


def mark_phases(
    panels: Sequence["Axes"], rows: Sequence[Mapping[str, Any]], *, upright: bool
) -> None:
    """A thin line where a phase begins, and above the first panel the phases' names.

    Args:
        panels: over the same epochs.
        rows: `phase`, `start` and `epochs` of each: the epochs before it and in it.
        upright: whether names stand upright where they have no room; else they are left out.
    """
    for axes in panels:
        for row in rows[1:]:
            axes.axvline(row["start"] + 0.5, color=LINE, linewidth=0.9, linestyle=(0, (4, 3)))
    width = 72 * panels[0].get_figure().get_figwidth()  # type: ignore[union-attr]
    room = (width - 45) / 5.4 / (rows[-1]["start"] + rows[-1]["epochs"])  # letters in an epoch
    fits = all(len(row["phase"]) <= room * row["epochs"] for row in rows)
    if not fits and not upright:
        return
    above = panels[0].secondary_xaxis("top")
    middles = [row["start"] + (row["epochs"] + 1) / 2 for row in rows]
    above.set_xticks(middles, [row["phase"] for row in rows])
    above.tick_params(length=0, labelsize=8.5, labelcolor=GREY, rotation=0 if fits else 90)
    above.spines["top"].set_visible(False)


def place_labels(points: Sequence[Point], widths: Sequence[float], sheet: Point) -> list[Point]:
    """How far from its point each label's lower left corner stands.

    Each label takes the nearest free place: right of its point, left of it, then further up or
    down. Where all are taken it stands at the first.

    Args:
        points: places on the sheet, in typographic points, as all lengths here.
        widths: of the labels.
        sheet: width and height, which no label leaves.
    """
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    offsets = []
    for (x, y), width in zip(points, widths, strict=True):
        rises = [rise for n in range(8) for rise in (4 + n * LABEL_HEIGHT, -16 - n * LABEL_HEIGHT)]
        spots = [(shift, rise) for rise in rises for shift in (7.0, -7.0 - width)]
        places = [(x + dx, y + dy, x + dx + width, y + dy + LABEL_HEIGHT) for dx, dy in spots]
        free = (at for at, place in enumerate(places) if _is_free(place, taken, sheet))
        chosen = next(free, 0)
        taken.append(places[chosen])
        offsets.append(spots[chosen])
    return offsets


def _is_free(
    place: tuple[float, float, float, float],
    taken: Sequence[tuple[float, float, float, float]],
    sheet: Point,
) -> bool:
    left, bottom, right, top = place
    inside = left >= 0 and bottom >= 0 and right <= sheet[0] and top <= sheet[1]
    return inside and not any(
        left < other[2] and other[0] < right and bottom < other[3] and other[1] < top
        for other in taken
    )


def name_points(
    axes: "Axes", points: Sequence[Point], names: Sequence[str], colors: Sequence[str]
) -> None:
    """Names near their points, with a thin line where one stands further off."""
    figure = axes.get_figure()
    figure.draw_without_rendering()  # type: ignore[union-attr]  # so that axes have their size
    inch = 72 / figure.dpi  # type: ignore[union-attr]
    box = axes.get_window_extent()
    places = [
        ((across - box.x0) * inch, (up - box.y0) * inch)
        for across, up in axes.transData.transform(points).tolist()
    ]
    widths = [_LETTER * len(name) for name in names]
    sheet = box.width * inch, box.height * inch + 2 * LABEL_HEIGHT  # some stand above
    offsets = place_labels(places, widths, sheet)
    for point, name, color, offset in zip(points, names, colors, offsets, strict=True):
        far = {"arrowstyle": "-", "color": color, "linewidth": 0.7}
        axes.annotate(
            name,
            point,
            xytext=offset,
            textcoords="offset points",
            color=color,
            fontweight="bold",
            arrowprops=far if abs(offset[1] + LABEL_HEIGHT / 2) > LABEL_HEIGHT else None,
        )


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Names left of what lies side by side, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
