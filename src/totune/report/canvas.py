"""What every picture of a report shares: colours, style, the way to an SVG element."""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from totune.report import formatting

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
_INK = "#26303a"
_FAINT = "#d5dae0"
STYLE: dict[Any, Any] = {
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


def color_of(strategy: str, strategies: Sequence[str]) -> str:
    """The colour a strategy has in every picture of a report."""
    return PALETTE[list(strategies).index(strategy) % len(PALETTE)]


def axis_label(metric: str) -> str:
    """A metric's name, with its unit where values are points."""
    unit = ", points" if formatting.is_bounded(metric) else ""
    return f"{formatting.metric_label(metric)}{unit}"


def blank(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, sizes in inches."""
    figure = blank(width, height)
    return figure, figure.add_subplot()


def as_svg(figure: Figure, title: str) -> str:
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
