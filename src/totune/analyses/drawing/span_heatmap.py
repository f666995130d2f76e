"""A change for every continuous span of layers: the upper triangle of a heatmap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize

from totune.adapters.sharing import Span
from totune.report.canvas import STYLE, as_svg, blank

# The report's vermilion and blue, darker, so that white letters are legible on the ends.
_HARM, _NONE, _GAIN = "#B34A00", "#f7f7f7", "#005A8F"
_INK = "#26303a"
_SHADES = 47  # odd, so that 0 has a shade; from 49 on the scale beside would be a bitmap
_PRINTED = 12  # layers, up to which values stand in their cells
_DARK = 0.24  # relative luminance below which white letters have more contrast than ink


@dataclass(frozen=True)
class SpanHeatmap:
    """Changes by first layer (down) and last layer (to the right).

    Attributes:
        title: what the picture shows, for those who cannot see it.
        heading: above the picture, or "".
        label: of the scale of colours.
        layers: names of the layers, bottom of the encoder first.
        cells: in percent; None where the first layer is above the last, or nothing is known.
        limit: the scale ends at this change, in percent, on both sides.
        harm_is_low: whether a negative change is for the worse.
    """

    title: str
    heading: str
    label: str
    layers: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    limit: float
    harm_is_low: bool


def layer_name(span: Span) -> str:
    """Layers by their numbers: "3", or "3–4" of several."""
    first, last = span
    return str(first) if first == last else f"{first}–{last}"


def span_cells(
    layers: Sequence[Span], values: Mapping[Span, float | None]
) -> tuple[tuple[float | None, ...], ...]:
    """Values by span as rows of first and columns of last layers; None below the diagonal."""
    return tuple(
        tuple(values[first, last] if last >= first else None for _, last in layers)
        for first, _ in layers
    )


def draw_spans(figure: SpanHeatmap) -> str:
    """Colours diverge from 0; values are printed where there is room."""
    count = len(figure.layers)
    printed = count <= _PRINTED
    side = max(2.2, (0.36 if printed else 0.24) * count)  # inches
    with mpl.rc_context(STYLE):
        canvas = blank(side + 1.75, side + 0.95)
        axes: Axes = canvas.subplots()
        values = np.ma.masked_invalid(_numbers(figure))
        edges = np.arange(count + 1) + 0.5
        drawn = axes.pcolormesh(
            edges,
            edges,
            values,
            norm=Normalize(-figure.limit, figure.limit),
            cmap=_colors(figure.harm_is_low),
            edgecolors="white",
            linewidth=1,
        )
        if printed:
            _print_values(axes, figure, drawn)
        _label_axes(axes, figure)
        bar = canvas.colorbar(drawn, ax=axes, shrink=0.8, aspect=18, label=figure.label)
        bar.outline.set_visible(False)
        return as_svg(canvas, figure.title)


def _numbers(figure: SpanHeatmap) -> np.ndarray:
    return np.array([[np.nan if cell is None else cell for cell in row] for row in figure.cells])


def _colors(harm_is_low: bool) -> LinearSegmentedColormap:
    ends = (_HARM, _NONE, _GAIN) if harm_is_low else (_GAIN, _NONE, _HARM)
    return LinearSegmentedColormap.from_list("change", ends, N=_SHADES)


def _print_values(axes: Axes, figure: SpanHeatmap, drawn: ScalarMappable) -> None:
    for down, row in enumerate(figure.cells, start=1):
        for right, value in enumerate(row, start=1):
            if value is not None:
                color = _letters_on(drawn.to_rgba(np.array([value]))[0])
                axes.text(
                    right, down, _short(value), ha="center", va="center", fontsize=8, color=color
                )


def _letters_on(color: np.ndarray) -> str:
    """Ink or white, whichever has more contrast (WCAG's relative luminance of sRGB)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < _DARK else _INK


def _short(value: float) -> str:
    """As many digits as a cell has room for, a true minus, and no sign on a zero."""
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


def _label_axes(axes: Axes, figure: SpanHeatmap) -> None:
    """First layers down from the top, last layers below."""
    ticks = np.arange(len(figure.layers)) + 1
    axes.set_xticks(ticks, figure.layers)
    axes.set_yticks(ticks, figure.layers)
    axes.tick_params(length=0, labelsize=9 if len(figure.layers) <= _PRINTED else 7.5)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)
    axes.set_xlabel("Last layer without adapters")
    axes.set_ylabel("First layer without adapters")
    if figure.heading:
        axes.set_title(figure.heading, loc="left", fontsize=11, fontweight="bold")
