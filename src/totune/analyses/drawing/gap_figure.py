"""The gap between train and dev by epoch: as plain data, then drawn."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from totune.report import formatting
from totune.report.canvas import STYLE, as_svg, color_of, sheet
from totune.report.figures import scale

Found = Mapping[str, Any]

_LIMIT = "#b3261e"
_BOUNDARY: dict[str, Any] = {"color": "#9aa4ae", "linewidth": 0.9, "linestyle": (0, (4, 3))}
_LIVE: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "alpha": 0.8}


@dataclass(frozen=True)
class GapLine:
    """One run; a place on the axis of epochs, from 1, and a gap per epoch.

    Attributes:
        live: which gaps are of a train score measured while training.
        kept: the place of the epoch that was kept, None where it is not known.
        stops: where the gap rule would end a phase.
    """

    seed: int
    at: tuple[int, ...]
    gaps: tuple[float | None, ...]
    live: tuple[bool, ...]
    kept: int | None
    stops: tuple[int, ...]


@dataclass(frozen=True)
class GapPanel:
    """The runs of one strategy; `starts` are the places after which a further phase begins."""

    strategy: str
    lines: tuple[GapLine, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class GapFigure:
    """How far train leads dev by epoch, a panel per strategy; bounded metrics in points.

    Attributes:
        limit: the tolerance of the gap rule.
        limits: of the axis of all panels.
    """

    metric: str
    strategies: tuple[str, ...]
    panels: tuple[GapPanel, ...]
    limit: float
    limits: tuple[float, float]


def gap_figure(rows: Sequence[Found], facts: Found) -> GapFigure:
    """A panel per strategy of which a gap is known, in the study's order."""
    metric = facts["metric"]
    groups = {name: list(found) for name, found in groupby(rows, lambda row: row["strategy"])}
    panels = tuple(
        _panel(name, found, metric)
        for name, found in groups.items()
        if any(row["gap"] is not None for row in found)
    )
    limit = scale(metric, [facts["tolerance"]])[0]
    gaps = [gap for panel in panels for line in panel.lines for gap in line.gaps if gap is not None]
    return GapFigure(metric, tuple(facts["order"]), panels, limit, _limits(gaps, limit))


def _limits(gaps: Sequence[float], limit: float) -> tuple[float, float]:
    """From a little below 0, since where dev leads nothing is over-fitted, to the widest gap."""
    high = 1.08 * max(*gaps, 1.5 * limit) if gaps else 1.0
    low = 1.08 * min(0.0, *gaps) if gaps else 0.0
    return max(low, -high), high or 1.0


def _panel(strategy: str, rows: Sequence[Found], metric: str) -> GapPanel:
    """Each phase begins at the same place for all seeds: where the longest before it ends.

    A phase of one epoch ends with it under any rule: none is marked there, unless that rule ended
    it (it alone has train measured with dropout off).
    """
    longest: dict[int, int] = {}
    for row in rows:
        longest[row["place"]] = max(row["epoch_in_phase"], longest.get(row["place"], 0))
    starts = {place: sum(longest[one] for one in longest if one < place) for place in longest}
    runs = groupby(rows, lambda row: row["seed"])
    ruled = {row["place"] for row in rows if row["dropout_off"] or longest[row["place"]] > 1}
    lines = tuple(_line(seed, list(found), starts, ruled, metric) for seed, found in runs)
    return GapPanel(strategy, lines, tuple(sorted(starts.values()))[1:])


def _line(
    seed: int, rows: Sequence[Found], starts: Mapping[int, int], ruled: set[int], metric: str
) -> GapLine:
    at = [starts[row["place"]] + row["epoch_in_phase"] for row in rows]
    return GapLine(
        seed,
        tuple(at),
        tuple(None if row["gap"] is None else scale(metric, [row["gap"]])[0] for row in rows),
        tuple(not row["dropout_off"] for row in rows),
        next((place for place, row in zip(at, rows, strict=True) if row["kept"]), None),
        tuple(
            place
            for place, row in zip(at, rows, strict=True)
            if row["rule"] and row["place"] in ruled
        ),
    )


def draw_gap(figure: GapFigure, panel: GapPanel) -> str:
    """One strategy's gap by epoch, a line per seed; the axis of gaps is shared."""
    color = color_of(panel.strategy, figure.strategies)
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(3.1, 2.5)
        axes.axhline(0, color="#9aa4ae", linewidth=0.8)
        axes.axhline(figure.limit, color=_LIMIT, linewidth=1)
        for start in panel.starts:
            axes.axvline(start + 0.5, **_BOUNDARY)
        for line in panel.lines:
            _draw_line(axes, line, color)
        axes.set_title(panel.strategy, loc="left", fontsize=11, color=color, fontweight="bold")
        axes.set_ylim(*figure.limits)
        axes.set_xlim(0.5, max(line.at[-1] for line in panel.lines) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("Epoch")
        axes.set_ylabel("Gap, points" if formatting.is_bounded(figure.metric) else "Gap")
        axes.grid(axis="y")
        return as_svg(canvas, f"Gap between train and dev of {panel.strategy}")


def _draw_line(axes: Axes, line: GapLine, color: str) -> None:
    heights = dict(
        zip(line.at, (math.nan if gap is None else gap for gap in line.gaps), strict=True)
    )
    for at, live in _stretches(line):
        style = _LIVE if live else {}
        axes.plot(
            at, [heights[one] for one in at], color=color, marker="o", ms=2.2, lw=1.3, **style
        )
    if line.kept is not None:
        axes.scatter([line.kept], [heights[line.kept]], s=24, color=color, zorder=3)
    for stop in line.stops:
        axes.scatter([stop], [heights[stop]], s=46, marker="x", color=_LIMIT, zorder=4)


def _stretches(line: GapLine) -> Iterator[tuple[list[int], bool]]:
    """The places of epochs whose train score was measured alike."""
    places = zip(line.at, line.live, strict=True)
    for live, same in groupby(places, lambda place: place[1]):
        yield [at for at, _ in same], live
