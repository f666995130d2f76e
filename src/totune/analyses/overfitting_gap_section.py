"""The gap between train and dev: in words, as tables, and by epoch."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from totune.analyses.base import AnalysisResult, Rows
from totune.report import formatting, plots
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word

Facts = Mapping[str, Any]

_PICTURES = (
    "The pictures show train and dev by epoch, a line per seed, and below them the gap: dotted "
    "where train was measured while training. A dot is the epoch that was kept, a cross where the "
    "gap rule would end a phase, the red line its tolerance; a further phase begins at a dashed "
    "line, where the seed that stayed longest in the one before left it."
)
_SCORES = ("dev_there", "best_dev", "cost")


def gap_section(title: str, result: AnalysisResult) -> Section:
    """The analysis drawn."""
    facts = result.facts
    tables = [gap_table(title, facts)]
    rule = rule_table(facts)
    if rule.rows:
        tables.append(rule)
    # What was found, how train was measured, and what the pictures show.
    paragraphs = _finding(facts), _measured(facts), _PICTURES
    pictures = tuple(_pictures(result.rows, facts))
    return Section(title, paragraphs, tables=tuple(tables), pictures=pictures)


# Figures


def gap_figures(rows: Rows, facts: Facts) -> list[list[dict[str, Any]]]:
    """Rows of a figure per strategy of which a gap is known, in the study's order.

    Args:
        rows: as `OverfittingGap.run` gives them.
        facts: likewise.

    Returns:
        Per strategy a row per epoch, as `totune.report.phases.draw_phases` reads them; bounded
        metrics are in points.
    """
    groups = [list(own) for _, own in groupby(rows, lambda row: row["strategy"])]
    known = [own for own in groups if any(row["gap"] is not None for row in own)]
    return [[_figure_row(row, own, facts["metric"]) for row in own] for own in known]


def _figure_row(row: Mapping[str, Any], strategy: Rows, metric: str) -> dict[str, Any]:
    """Train measured with dropout on has columns of its own: `live` and `live_gap`."""
    dev, train, gap = (plots.scale(metric, row[name]) for name in ("dev", "train", "gap"))
    off = row["dropout_off"]
    # A phase of one epoch ends with it under any rule, unless the gap rule itself ended it, for
    # which train was measured with dropout off.
    longest = max(each["epoch_in_phase"] for each in strategy if each["place"] == row["place"])
    return {
        **row,
        "dev": dev,
        "train": train if off else None,
        "live": None if off else train,
        "gap": gap if off else None,
        "live_gap": None if off else gap,
        "stop": bool(row["rule"]) and (off or longest > 1),
    }


def gap_limits(figures: Sequence[Rows], tolerance: float) -> tuple[float, float] | None:
    """From a little below 0, since where dev leads nothing is over-fitted, to the widest gap."""
    found = [row[name] for rows in figures for row in rows for name in ("gap", "live_gap")]
    gaps = [gap for gap in found if gap is not None]
    if not gaps:
        return None
    high = 1.08 * max(*gaps, 1.5 * tolerance)
    return max(1.08 * min(0.0, *gaps), -high), high or 1.0


def _pictures(rows: Rows, facts: Facts) -> list[Picture]:
    """All on one scale of gaps."""
    from totune.report.phases import draw_phases

    metric, colors = facts["metric"], plots.colors_of(facts["order"])
    tolerance = plots.scale(metric, facts["tolerance"]) or 0.0
    figures = gap_figures(rows, facts)
    limits = gap_limits(figures, tolerance)
    pictures = []
    for figure in figures:
        strategy = figure[0]["strategy"]
        color = colors[strategy]
        svg = draw_phases(figure, metric, color, limit=tolerance, gap_limits=limits)
        caption = f"Train, dev and the gap between them under {strategy}."
        pictures.append(Picture(svg, caption))
    return pictures


# Sentences


def _finding(facts: Facts) -> str:
    known = [summary for summary in facts["strategies"] if summary["kept_gap"] is not None]
    if not known:
        return "The train metric was not measured, so no gap is known."
    metric = facts["metric"]
    most, least = (pick(known, key=lambda summary: summary["kept_gap"]) for pick in (max, min))
    gap = f"{_points(metric, most['kept_gap'])} of {formatting.metric_name(metric)}"
    if len(known) == 1:
        where = f"under {most['strategy']} is {gap}"
    else:
        where = f"is widest under {most['strategy']} ({gap}) and narrowest under "
        where += f"{least['strategy']} ({_points(metric, least['kept_gap'])})"
    return f"At the epochs that runs keep, the gap between train and dev {where}."


def _points(metric: str, value: float) -> str:
    text = formatting.score(metric, value, signed=True)
    return f"{text} points" if formatting.is_bounded(metric) else text


def _measured(facts: Facts) -> str:
    """Where the gap is that of one state of the weights, and where it is a lower estimate."""
    off = [f"{one['strategy']} ({one['phase']})" for one in facts["phases"] if one["dropout_off"]]
    if len(off) == len(facts["phases"]):
        return "Train was measured after every epoch with dropout off, as dev was."
    live = (
        "while it trained, with dropout and over the whole epoch, which makes the gap look smaller "
        "than it is and lets the rule end phases late"
    )
    if not off:
        return f"Train was measured {live}."
    where = ", ".join(off)
    return f"Train was measured after the epoch with dropout off in {where}; elsewhere {live}."


# Tables


def gap_table(title: str, facts: Facts) -> Table:
    """A row per strategy, the widest gap first."""
    metric = facts["metric"]
    columns = (
        Column("Strategy", numeric=False),
        Column("Runs"),
        Column("Gap at the kept epoch"),
        Column("Gap at the last epoch"),
    )
    ordered = sorted(facts["strategies"], key=lambda summary: -_or_least(summary["kept_gap"]))
    rows = tuple(
        Row(
            (
                word(summary["strategy"]),
                number(summary["runs"], formatting.count(summary["runs"])),
                *(_signed(metric, summary[name]) for name in ("kept_gap", "last_gap")),
            )
        )
        for summary in ordered
    )
    notes = ("How far train is ahead of dev; means over usable runs.",)
    return Table(title, columns, rows, notes)


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def rule_table(facts: Facts) -> Table:
    """Where the gap rule would end each phase that had epochs to spare, or was ended by it."""
    columns = (
        Column("Strategy", numeric=False),
        Column("Phase", numeric=False),
        Column("Epochs run"),
        Column("Rule ends it after"),
        Column("Gap there"),
        Column("Dev there"),
        Column("Best dev"),
        Column("Cost"),
        Column("Why", numeric=False),
    )
    metric, patience = facts["metric"], facts["gap_patience"]
    rows = tuple(
        Row(_rule_cells(metric, summary))
        for summary in facts["phases"]
        if summary["longest"] > 1 or summary["dropout_off"]
    )
    row = "after an epoch" if patience == 1 else f"after {patience} epochs in a row"
    notes = (
        f"The rule ends a phase when train leads dev by more than "
        f"{formatting.tolerance(metric, facts['tolerance'])} {row}, or when the dev score of "
        f"{facts['patience']} epochs before is still the best. The cost is how far the best dev "
        "score of the phase is above the best until then. A run keeps its last epoch unless dev "
        "shows by a standard error that an earlier one was better. What a later phase would make "
        "of it no record says.",
    )
    return Table("Where the gap rule would stop", columns, rows, notes)


def _rule_cells(metric: str, summary: Facts) -> tuple[Cell, ...]:
    from totune.report.phases import merge_reasons

    where = f"in {summary['stopped']} of {summary['runs']} runs"
    some = 0 < summary["stopped"] < summary["runs"]
    return (
        word(summary["strategy"]),
        word(summary["phase"]),
        _mean_epochs(summary["epochs"]),
        _mean_epochs(summary["stop"], where if some else ""),
        _signed(metric, summary["gap_there"]),
        *(number(summary[name], formatting.score(metric, summary[name])) for name in _SCORES),
        word(merge_reasons(summary["why"])),
    )


def _mean_epochs(value: float | None, detail: str = "") -> Cell:
    text = formatting.MISSING if value is None else f"{value:.1f}".removesuffix(".0")
    return number(value, text, detail)


def _signed(metric: str, value: float | None) -> Cell:
    return number(value, formatting.score(metric, value, signed=True))
