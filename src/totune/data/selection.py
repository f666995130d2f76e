"""Which rows of a source are used, and what their labels are called: filters and label maps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from totune.data.columns import resolve
from totune.data.tables import Cell, Remarks, SourceTable
from totune.errors import DataError
from totune.registry import did_you_mean
from totune.text import counted

Where = Mapping[str, str | Sequence[str]]
LabelMap = Mapping[str, str | None]


def keep_where(table: SourceTable, where: Where, remarks: Remarks) -> SourceTable:
    """The rows whose cells have the wanted values.

    Args:
        table: the rows.
        where: for each column (its name, or its number counted from 1) the value that is wanted, or
            several; rows must satisfy all columns.
        remarks: is told how many rows stay.

    Raises:
        DataError: a column does not exist, or no row is left.
    """
    kept = list(range(len(table)))
    for column, wanted in where.items():
        values = {wanted} if isinstance(wanted, str) else set(wanted)
        cells = table.columns[resolve(table, column, "where")]
        there = {text(cell) for cell in cells}
        absent = sorted(values - there)
        kept = [i for i in kept if text(cells[i]) in values]
        if absent:
            raise DataError(
                f"{table.source} has no row whose {column!r} is {' or '.join(map(repr, absent))} "
                f"(`where`). {did_you_mean(absent[0], sorted(there)[:20])}"
            )
        if not kept:
            raise DataError(f"{table.source} has no row that satisfies all of `where`.")
    if len(kept) < len(table):
        named = " and ".join(f"{column}={_listed(wanted)}" for column, wanted in where.items())
        remarks.notes.append(
            f"{table.source}: {counted(len(kept), 'row')} of {len(table):,} with {named}."
        )
    return _taken(table, kept)


def map_labels(table: SourceTable, column: str, names: LabelMap, remarks: Remarks) -> SourceTable:
    """The same rows with labels called otherwise, without those whose label has no name.

    Args:
        table: the rows.
        column: of the labels; a split without it stays as it is.
        names: what each label is called from here on, None (or nothing) to leave its rows out; ""
            stands for rows without a label. Labels that are not in it keep their names.
        remarks: is told what was left out.
    """
    if column not in table.columns:
        return table
    cells = [text(cell) for cell in table.columns[column]]
    mapped: list[Cell] = [names.get(cell, cell) or None for cell in cells]
    dropped = {label for label, name in names.items() if not name}
    kept = [i for i, cell in enumerate(cells) if cell not in dropped]
    if len(kept) < len(table):
        shown = " or ".join(repr(label) for label in names if label in dropped)
        remarks.notes.append(
            f"{table.source}: {counted(len(table) - len(kept), 'row')} labelled {shown} left out."
        )
    classes = table.classes
    if column in classes:
        renamed = (names.get(label, label) for label in classes[column])
        classes = {**classes, column: tuple(dict.fromkeys(filter(None, renamed)))}
    table = replace(table, columns={**table.columns, column: mapped}, classes=classes)
    return _taken(table, kept)


def check_label_map(table: SourceTable, column: str, names: LabelMap) -> None:
    """Finds labels that are to be mapped and that the train split does not have.

    Raises:
        DataError: with every such label and the nearest there is.
    """
    there = {text(cell) for cell in table.columns[column]}
    absent = [label for label in names if label not in there]
    if absent:
        hint = did_you_mean(absent[0], sorted(there)[:20])
        raise DataError(
            f"{table.source}: column {column!r} holds no {' or '.join(map(repr, absent))} "
            f"(`label_map`). {hint}"
        )


def text(cell: Cell) -> str:
    """A cell without space around it; empty where there is no value."""
    return (cell or "").strip()


def _listed(wanted: str | Sequence[str]) -> str:
    return wanted if isinstance(wanted, str) else " or ".join(wanted)


def _taken(table: SourceTable, kept: Sequence[int]) -> SourceTable:
    """The rows at `kept`, knowing still which of them stand for themselves."""
    if len(kept) == len(table):
        return table
    whole = None
    if table.whole is not None:
        whole = frozenset(new for new, old in enumerate(kept) if old in table.whole)
    return replace(table.take(kept), whole=whole)
