"""The gap between train and dev: in words, as tables, and by epoch."""

import math
from collections.abc import Mapping
from typing import Any

from totune.analyses.base import Values
from totune.analyses.drawing.gap_figure import gap_figures
from totune.report import formatting
from totune.report.document import Picture, Section
from totune.report.phase_drawing import draw_phases
from totune.report.phases import merge_reasons
from totune.report.table import Cell, Column, Row, Table, number, word

Found = Mapping[str, Any]

_PICTURES = (
    "The pictures show train and dev by epoch, a line per seed, and below them the gap: dotted "
    "where train was measured while training. A dot is the epoch that was kept, a cross where the "
    "gap rule would end a phase, the red line its tolerance; a further phase begins at a dashed "
    "line, where the seed that stayed longest in the one before left it."
)
_SCORES = ("dev_there", "best_dev", "cost")


def gap_section(title: str, values: Values) -> Section:
    """The analysis drawn."""
    facts = values.facts
    pictures = tuple(
        Picture(draw_phases(one), f"Train, dev and the gap between them under {one.strategy}.")
        for one in gap_figures(values.rows, facts)
    )
    tables = [gap_table(title, facts)]
    rule = rule_table(facts)
    if rule.rows:
        tables.append(rule)
    return Section(title, _words(facts), tables=tuple(tables), pictures=pictures)


def _words(facts: Found) -> tuple[str, ...]:
    """What was found, how train was measured, and what the pictures show."""
    return _finding(facts), _measured(facts), _PICTURES


def _finding(facts: Found) -> str:
    known = [found for found in facts["strategies"] if found["kept_gap"] is not None]
    if not known:
        return "The train metric was not measured, so no gap is known."
    metric = facts["metric"]
    most, least = (pick(known, key=lambda found: found["kept_gap"]) for pick in (max, min))
    gap = f"{_told(metric, most['kept_gap'])} of {formatting.metric_name(metric)}"
    if len(known) == 1:
        told = f"under {most['strategy']} is {gap}"
    else:
        told = f"is widest under {most['strategy']} ({gap}) and narrowest under "
        told += f"{least['strategy']} ({_told(metric, least['kept_gap'])})"
    return f"At the epochs that runs keep, the gap between train and dev {told}."


def _told(metric: str, value: float) -> str:
    text = formatting.score(metric, value, signed=True)
    return f"{text} points" if formatting.is_bounded(metric) else text


def _measured(facts: Found) -> str:
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


def gap_table(title: str, facts: Found) -> Table:
    """A row per strategy, the widest gap first."""
    metric = facts["metric"]
    columns = (
        Column("Strategy", numeric=False),
        Column("Runs"),
        Column("Gap at the kept epoch"),
        Column("Gap at the last epoch"),
    )
    ordered = sorted(facts["strategies"], key=lambda found: -_or_least(found["kept_gap"]))
    rows = tuple(
        Row(
            (
                word(found["strategy"]),
                number(found["runs"], formatting.count(found["runs"])),
                *(_signed(metric, found[name]) for name in ("kept_gap", "last_gap")),
            )
        )
        for found in ordered
    )
    notes = ("How far train is ahead of dev; means over usable runs.",)
    return Table(title, columns, rows, notes)


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def rule_table(facts: Found) -> Table:
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
        Row(_rule_cells(metric, found))
        for found in facts["phases"]
        if found["longest"] > 1 or found["dropout_off"]
    )
    row = "after an epoch" if patience == 1 else f"after {patience} epochs in a row"
    notes = (
        f"The rule ends a phase when train leads dev by more than "
        f"{formatting.tolerance(metric, facts['tolerance'])} {row}, or when the dev score of "
        f"{facts['patience']} epochs before is still the best. The cost is how far "
        "the best dev score of the phase is above the best until then. A run keeps its last epoch "
        "unless dev shows by a standard error that an earlier one was better. What a later phase "
        "would make of it no record tells.",
    )
    return Table("Where the gap rule would stop", columns, rows, notes)


def _rule_cells(metric: str, found: Found) -> tuple[Cell, ...]:
    where = f"in {found['stopped']} of {found['runs']} runs"
    some = 0 < found["stopped"] < found["runs"]
    return (
        word(found["strategy"]),
        word(found["phase"]),
        _mean_epochs(found["epochs"]),
        _mean_epochs(found["stop"], where if some else ""),
        _signed(metric, found["gap_there"]),
        *(number(found[name], formatting.score(metric, found[name])) for name in _SCORES),
        word(merge_reasons(found["why"])),
    )


def _mean_epochs(value: float | None, detail: str = "") -> Cell:
    text = formatting.MISSING if value is None else f"{value:.1f}".removesuffix(".0")
    return number(value, text, detail)


def _signed(metric: str, value: float | None) -> Cell:
    return number(value, formatting.score(metric, value, signed=True))
