"""The table of a study's phases: how long each took, what was frozen, why it ended."""

import re
from collections.abc import Sequence
from statistics import fmean

from totune.advice.summary import StrategySummary
from totune.report import formatting
from totune.report.phase_figure import longest_plan, phased, phases_of
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import EpochRecord, RunRecord, StudyInfo

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
Stays = Sequence[list[EpochRecord]]  # the epochs of one phase, of every run


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


def _rows(info: StudyInfo, group: StrategySummary) -> list[Row]:
    plans = [phases_of(run) for run in group.usable if run.epochs]
    rows = []
    for place, (name, _) in enumerate(longest_plan(plans)):
        stays = [plan[place][1] for plan in plans if place < len(plan)]
        rows.append(Row((word(group.strategy), word(name), *_cells(info, stays))))
    return rows


def _cells(info: StudyInfo, stays: Stays) -> tuple[Cell, ...]:
    lasts = [stay[-1] for stay in stays]
    known = [last.dev[info.metric] for last in lasts if info.metric in last.dev]
    dev = fmean(known) if known else None
    return (
        _epochs([len(stay) for stay in stays]),
        word(_frozen(lasts[0].frozen_depth, info.model.get("layers"))),
        word(_share([last.cached for last in lasts])),
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


def _share(cached: Sequence[bool]) -> str:
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
