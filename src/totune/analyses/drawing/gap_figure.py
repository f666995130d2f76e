"""Train, dev and the gap between them by epoch, from the rows of an analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from totune.report.phase_figure import PhaseFigure, PhaseLine, PhaseSpan, scale, shown

Found = Mapping[str, Any]


def gap_figures(rows: Sequence[Found], facts: Found) -> list[PhaseFigure]:
    """A figure per strategy of which a gap is known, in the study's order; one scale of gaps.

    Args:
        rows: as `OverfittingGap.run` gives them.
        facts: likewise.
    """
    groups = [list(found) for _, found in groupby(rows, lambda row: row["strategy"])]
    known = [found for found in groups if any(row["gap"] is not None for row in found)]
    figures = [_figure(found, facts) for found in known]
    limits = _limits(figures)
    return [replace(figure, gap_limits=limits) for figure in figures]


def _figure(rows: Sequence[Found], facts: Found) -> PhaseFigure:
    spans = _spans(rows)
    return PhaseFigure(
        metric=facts["metric"],
        strategy=rows[0]["strategy"],
        strategies=tuple(facts["order"]),
        spans=tuple(spans.values()),
        lines=tuple(
            _line(list(run), spans, facts["metric"])
            for _, run in groupby(rows, lambda row: row["seed"])
        ),
        gap_limit=scale(facts["metric"], [facts["tolerance"]])[0],
    )


def _spans(rows: Sequence[Found]) -> dict[int, PhaseSpan]:
    """Every phase by its place in the plan, as wide as the run needs that stays in it longest."""
    spans: dict[int, PhaseSpan] = {}
    start = 0
    for place in sorted({row["place"] for row in rows}):
        own = [row for row in rows if row["place"] == place]
        spans[place] = PhaseSpan(own[0]["phase"], start, max(row["epoch_in_phase"] for row in own))
        start += spans[place].epochs
    return spans


def _line(rows: Sequence[Found], spans: Mapping[int, PhaseSpan], metric: str) -> PhaseLine:
    at = [spans[row["place"]].start + row["epoch_in_phase"] for row in rows]
    places = list(zip(at, rows, strict=True))

    def values(name: str, dropout_off: bool) -> tuple[float | None, ...]:
        return shown(
            metric, [row[name] if row["dropout_off"] == dropout_off else None for row in rows]
        )

    return PhaseLine(
        seed=rows[0]["seed"],
        at=tuple(at),
        dev=shown(metric, [row["dev"] for row in rows]),
        train=values("train", True),
        live=values("train", False),
        gap=values("gap", True),
        live_gap=values("gap", False),
        kept=next((place for place, row in places if row["kept"]), None),
        stops=tuple(place for place, row in places if row["rule"] and _is_choice(row, spans)),
    )


def _is_choice(row: Found, spans: Mapping[int, PhaseSpan]) -> bool:
    """Whether a rule has a say: a phase of one epoch ends with it under any.

    Unless the rule itself ended it, for which train was measured with dropout off.
    """
    return bool(row["dropout_off"]) or spans[row["place"]].epochs > 1


def _limits(figures: Sequence[PhaseFigure]) -> tuple[float, float] | None:
    """From a little below 0, since where dev leads nothing is over-fitted, to the widest gap."""
    gaps = [
        gap
        for figure in figures
        for line in figure.lines
        for gap in (*line.gap, *line.live_gap)
        if gap is not None
    ]
    if not gaps:
        return None
    high = 1.08 * max(*gaps, *(1.5 * (figure.gap_limit or 0.0) for figure in figures))
    return max(1.08 * min(0.0, *gaps), -high), high or 1.0
