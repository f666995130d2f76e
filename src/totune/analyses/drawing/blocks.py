"""A measure by block: a line per subject, as plain data, drawn, and as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from totune.analyses.measuring.blocks import PRETRAINED, block_name
from totune.report.canvas import STYLE, as_svg, color_of, sheet
from totune.report.table import Cell, Column, Row, Table, word
from totune.runs.records import RunRecord

_NEUTRAL = "#26303a"  # of the pretrained encoder, which belongs to no strategy
_FAINT = "#66717c"
_CONTROL: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (1, 1.6))}
_NULL: dict[str, Any] = {"color": _FAINT, "linewidth": 1.1, "linestyle": (0, (4, 1.6, 1, 1.6))}
_BOUND: dict[str, Any] = {"color": "#b3261e", "linewidth": 1}


@dataclass(frozen=True)
class BlockLine:
    """One subject; a value per block 0..L.

    Attributes:
        values: means over seeds.
        spread: deviations over seeds, or None for one seed.
        control: means over seeds of the control.
    """

    subject: str
    values: tuple[float, ...]
    spread: tuple[float, ...] | None
    control: tuple[float, ...]


@dataclass(frozen=True)
class BlockFigure:
    """A measure by block.

    Attributes:
        title: what the picture shows, for those who cannot see it.
        label: of the axis of values.
        lines: one per subject.
        strategies: of the study, in the order of their colours.
        control: what the dotted lines are called.
        null: name and values of a line that belongs to no subject, or None.
        bound: name and height of a level that values cannot pass, or None.
    """

    title: str
    label: str
    lines: tuple[BlockLine, ...]
    strategies: tuple[str, ...]
    control: str
    null: tuple[str, tuple[float, ...]] | None = None
    bound: tuple[str, float] | None = None


def strategies_of(subjects: Sequence[str], records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Strategies in the order of their colours: as in a study's report, where there is one."""
    found = dict.fromkeys([*(record.strategy for record in records), *subjects])
    return tuple(name for name in found if name != PRETRAINED)


def draw_blocks(figure: BlockFigure) -> str:
    """Lines with a band of one deviation over seeds; controls dotted."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.9, 3.9)
        handles = [_draw_line(axes, line, _color(line.subject, figure)) for line in figure.lines]
        handles.append(Line2D([], [], color=_FAINT, label=figure.control, **_CONTROL))
        if figure.null is not None:
            name, values = figure.null
            handles += axes.plot(range(len(values)), values, label=name, **_NULL)
        if figure.bound is not None:
            name, height = figure.bound
            handles.append(axes.axhline(height, label=name, **_BOUND))
        axes.xaxis.set_major_locator(MaxNLocator(13, integer=True))
        axes.set_xlabel("Layer (0: the embeddings)")
        axes.set_ylabel(figure.label)
        axes.grid(axis="y")
        canvas.legend(
            handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=8.5
        )
        return as_svg(canvas, figure.title)


def _color(subject: str, figure: BlockFigure) -> str:
    return _NEUTRAL if subject == PRETRAINED else color_of(subject, figure.strategies)


def _draw_line(axes: Axes, line: BlockLine, color: str) -> Line2D:
    at, values = range(len(line.values)), np.array(line.values)
    if line.spread is not None:
        spread = np.array(line.spread)
        axes.fill_between(at, values - spread, values + spread, color=color, alpha=0.18, lw=0)
    axes.plot(at, line.control, color=color, alpha=0.8, **_CONTROL)
    style: dict[str, Any] = {"color": color, "linewidth": 1.6, "marker": "o", "markersize": 3.5}
    (drawn,) = axes.plot(at, values, label=line.subject, **style)
    return drawn


def block_table(title: str, columns: Mapping[str, Sequence[Cell]], notes: Sequence[str]) -> Table:
    """A row per block, a column per subject."""
    cells = list(zip(*columns.values(), strict=True))
    rows = tuple(Row((word(block_name(at)), *found)) for at, found in enumerate(cells))
    heads = (Column("Block", numeric=False), *map(Column, columns))
    return Table(title, heads, rows, tuple(notes))
