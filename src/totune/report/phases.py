"""Training phase by phase: how long each took and why it ended, and the gap of train and dev."""

import re
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from totune.report import formatting, plots
from totune.report.axes import (
    RED,
    Point,
    add_heading,
    draw_level,
    label_axes,
    mark_phases,
)
from totune.report.figures import epoch_rows, phases_of
from totune.report.groups import Runs, best_first, by_strategy
from totune.report.plots import Rows, axis_label, scale
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import EpochRecord, RunRecord, StudyInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT = 2.2  # points, of an epoch: a phase of one epoch has no line
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_KINDS: dict[str, dict[str, Any]] = {
    "dev": {"label": "dev"},
    "train": {"label": "train, dropout off", "width": 1.1, "style": "dashed"},
    "live": {
        "label": "train, measured while training, dropout on",
        "width": 1.1,
        "style": "dotted",
        "alpha": 0.8,
    },
}


def phased(info: StudyInfo, records: Sequence[RunRecord]) -> list[Runs]:
    """The strategies of several phases or with a stop that compares train with dev, best first."""
    groups = best_first(by_strategy(info, records), info.metric)
    return [group for group in groups if any(_is_phased(run) for run in group.usable)]


def _is_phased(run: RunRecord) -> bool:
    return len(phases_of(run)) > 1 or any(epoch.train_after for epoch in run.epochs)


def phase_rows(info: StudyInfo, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The `epoch_rows` of the usable runs of `phased` strategies, as `draw_phases` takes them.

    Train while training is kept only where train with dropout off is not known. A strategy of which
    no score is known has no rows.
    """
    names = [group.strategy for group in phased(info, records)]
    rows = [
        {**row, "live": row["live"] if row["train"] is None else None}
        for row in epoch_rows(info, records)
        if row["usable"] and row["strategy"] in names
    ]
    known = {row["strategy"] for row in rows for kind in _KINDS if row[kind] is not None}
    return [row for row in rows if row["strategy"] in known]


def gap_limit(records: Sequence[RunRecord], strategy: str, metric: str) -> float | None:
    """The gap that ends a phase, where a stop of the strategy looked at it, as axes show it."""
    runs = [run for run in records if run.strategy == strategy and run.status == "finished"]
    first = next(run for run in runs if run.epochs)
    limit = first.config.get("strategy", {}).get("options", {}).get("gap_tolerance")
    compares = any(epoch.train_after for epoch in first.epochs)
    return scale(metric, limit) if compares else None


def align_phases(rows: Rows) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Places the epochs of several runs on one axis, on which a phase begins alike for all.

    Args:
        rows: an epoch each, with its `phase`, that one's `place` in the plan, and `epoch_in_phase`.

    Returns:
        The rows with their place `at` on the axis, counted from 1. The phases: `phase`, and how
        many `epochs` it takes in the run that stays in it longest, after the first `start`.
    """
    spans: dict[int, dict[str, Any]] = {}
    start = 0
    for place in sorted({row["place"] for row in rows}):
        own = [row for row in rows if row["place"] == place]
        epochs = max(row["epoch_in_phase"] for row in own)
        spans[place] = {"phase": own[0]["phase"], "start": start, "epochs": epochs}
        start += epochs
    placed = [{**row, "at": spans[row["place"]]["start"] + row["epoch_in_phase"]} for row in rows]
    return placed, list(spans.values())


def draw_phases(
    rows: Rows,
    metric: str,
    color: str,
    *,
    limit: float | None = None,
    gap_limits: Point | None = None,
) -> str:
    """Train and dev by epoch, a line per seed and kind of score; below them the gap.

    Args:
        rows: an epoch each of one strategy, with what `align_phases` needs; `seed`; `dev`, `train`
            and `live`, the scores of `epoch_rows`; `gap`; `kept`. And, where that is asked,
            `live_gap`, that of `live`; `stop`, whether a rule would end the phase there.
        metric: which they show, in points where it is bounded.
        color: of the strategy.
        limit: how large a gap ends a phase, or None where none does.
        gap_limits: of the axis of gaps, or None for one that fits these rows.
    """
    strategy, missing = rows[0]["strategy"], {"live_gap": None, "stop": False}
    placed, spans = align_phases([{**missing, **row} for row in rows])
    has_gap = any(row[kind] is not None for row in placed for kind in ("gap", "live_gap"))
    heights = (2.3, 1.3) if has_gap else (2.4,)
    with plots.picture(f"Phases of {strategy}", 4.7, 1.4 + sum(heights)) as plot:
        panels = plot.grid(len(heights), sharex=True, height_ratios=heights)
        for kind, style in _KINDS.items():
            if any(row[kind] is not None for row in placed):
                line = {"by": "seed", "color": color, "marker": _DOT, **style}
                plots.lines(panels[0], placed, "at", kind, **line)
        kept = [row for row in placed if row["kept"]]
        plots.scatter(panels[0], kept, "at", "dev", color=color, size=34)
        if any(row["stop"] for row in placed):
            _draw_stops(panels[0], placed, "dev", "the gap rule would stop")
        add_heading(panels[0], strategy, color)
        label_axes(panels[0], y=axis_label(metric))
        if has_gap:
            _draw_gap(panels[1], placed, color, limit)
            unit = ", points" if formatting.is_bounded(metric) else ""
            label_axes(panels[1], y=f"Gap{unit}", ylim=gap_limits)
        mark_phases(panels, spans, upright=True)
        epochs = spans[-1]["start"] + spans[-1]["epochs"]
        label_axes(panels[-1], x="Epoch", xlim=(0.5, epochs + 0.5), ticks=8, grid="")
        plot.legend()
    return plot.svg


def _draw_gap(axes: "Axes", rows: Rows, color: str, limit: float | None) -> None:
    """How far train leads dev, and the limit; one run crosses it and stops."""
    for gap, kind in (("gap", "dev"), ("live_gap", "live")):
        line = {"by": "seed", "color": color, "marker": _DOT, **_KINDS[kind], "label": ""}
        plots.lines(axes, rows, "at", gap, **line)
        _draw_stops(axes, rows, gap)
    draw_level(axes, 0)
    if limit is not None:
        draw_level(axes, limit, color=RED, name="limit")


def _draw_stops(axes: "Axes", rows: Rows, height: str, label: str = "") -> None:
    stops = [row for row in rows if row["stop"]]
    plots.scatter(axes, stops, "at", height, color=RED, label=label, marker="x", size=42)


def phase_table(info: StudyInfo, records: Sequence[RunRecord]) -> Table:
    """Every phase of the strategies of several phases, over their usable runs."""
    columns = (
        Column("Strategy", numeric=False),
        Column("Phase", numeric=False),
        Column("Epochs"),
        Column("Frozen", numeric=False),
        Column("From the cache", numeric=False),
        Column(f"Dev {formatting.metric_name(info.metric)} at its end"),
        Column("Why it ended", numeric=False),
    )
    rows = tuple(row for group in phased(info, records) for row in _rows(info, group))
    notes = (
        "Means over the usable runs. Frozen are the blocks, counted from below, whose output was "
        "a constant in this phase; from the cache: it was computed once and read in every epoch.",
    )
    return Table("Phases", columns, rows, notes)


def _rows(info: StudyInfo, group: Runs) -> list[Row]:
    plans = [phases_of(run) for run in group.usable if run.epochs]
    longest = max(plans, key=len)
    rows = []
    for place, (name, _) in enumerate(longest):
        stays = [plan[place][1] for plan in plans if place < len(plan)]
        rows.append(Row((word(group.strategy), word(name), *_cells(info, stays))))
    return rows


def _cells(info: StudyInfo, stays: Sequence[list[EpochRecord]]) -> tuple[Cell, ...]:
    lasts = [stay[-1] for stay in stays]
    known = [last.dev[info.metric] for last in lasts if info.metric in last.dev]
    dev = fmean(known) if known else None
    return (
        _epochs([len(stay) for stay in stays]),
        word(_frozen(lasts[0].frozen_depth, info.model.get("layers"))),
        word(_cached([last.cached for last in lasts])),
        number(dev, formatting.score(info.metric, dev)),
        word(merge_reasons([last.ended for last in lasts])),
    )


def _epochs(counts: Sequence[int]) -> Cell:
    mean = fmean(counts)
    few, many = min(counts), max(counts)
    return Cell(mean, f"{mean:.1f}".removesuffix(".0"), f"{few} to {many}" if few < many else "")


def _frozen(depth: int, layers: int | None) -> str:
    if depth < 0:
        return "nothing"
    if depth == layers:
        return "the encoder"
    return f"up to layer {depth}" if depth else "embeddings"


def _cached(cached: Sequence[bool]) -> str:
    if len(set(cached)) == 1:
        return "yes" if cached[0] else "no"
    return f"in {sum(cached)} of {len(cached)} runs"


def merge_reasons(reasons: Sequence[str]) -> str:
    """Why a phase ended in several runs, the most frequent first, counted if they differ.

    Reasons that differ in their numbers alone are one, with the range of each number.
    """
    alike: dict[str, list[str]] = {}
    for reason in filter(None, reasons):
        alike.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    if len(alike) == 1 and all(reasons):
        return _merged(list(reasons))
    ordered = sorted(alike.values(), key=len, reverse=True)
    return "; ".join(f"{_merged(same)} ({len(same)} of {len(reasons)} runs)" for same in ordered)


def _merged(reasons: list[str]) -> str:
    between = _NUMBER.split(reasons[0])
    columns = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    return between[0] + "".join(
        _range(column) + after for column, after in zip(columns, between[1:], strict=True)
    )


def _range(numbers: Sequence[str]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if low == high else f"{low} to {high}"
