"""Tables: what every source is read into, whatever its format."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from totune.data.examples import SplitName
from totune.text import listed

Cell = str | None


@dataclass(frozen=True)
class Table:
    """Columns of text by name; numbers are kept as they were written.

    Attributes:
        source: what messages call it: a file's path, or a split of the hub.
        columns: the cells of each column, None where there is no value.
        rows: where each row stands in the source, counted from 1.
        unit: what `rows` counts: "line" of a text file or "row" of a binary one.
        header: whether the source named its columns.
        ragged: places of rows that were left out, their number of fields being wrong.
        notes: what a person should be told.
        warnings: what may spoil the result.
        document: the column that tells documents apart, where the format has one.
        whole: indices of the rows that stand for themselves, where the others are parts of them
            (phrases of a sentence) and are there for training alone; None where all do.
        blanks: what an empty cell of a column stands for, where leaving its row out is no loss.
        classes: the classes of a column in the order that the source declares; of columns of which
            it declares none, nothing.
    """

    source: str
    columns: Mapping[str, list[Cell]]
    rows: Sequence[int]
    unit: str = "row"
    header: bool = True
    ragged: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    document: str | None = None
    whole: frozenset[int] | None = None
    blanks: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, indices: Sequence[int]) -> str:
        """Where rows stand: "lines 3, 9 and 40 more"."""
        return listed([self.rows[i] for i in indices], self.unit)

    def without_parts(self) -> "Table":
        """The rows that are no part of others."""
        if self.whole is None:
            return self
        at = sorted(self.whole)
        columns = {name: [cells[i] for i in at] for name, cells in self.columns.items()}
        return replace(self, columns=columns, rows=[self.rows[i] for i in at], whole=None)

    def renamed(self, names: Sequence[str]) -> "Table":
        """The same table with its columns called `names`, in order."""
        columns = dict(zip(names, self.columns.values(), strict=True))
        return replace(self, columns=columns)


@dataclass(frozen=True)
class Tables:
    """The tables of one source, by split.

    Attributes:
        name: short name for reports.
        splits: the splits there are; always a train split.
        notes: what was noticed while they were gathered.
    """

    name: str
    splits: Mapping[SplitName, Table]
    notes: tuple[str, ...] = ()


def table_of(
    rows: Iterable[Mapping[str, Any]], source: str, numbers: Sequence[int], unit: str
) -> Table:
    """A table of mappings; a name that a row lacks becomes None."""
    columns: dict[str, list[Cell]] = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (count - len(column)))
            column.append(as_cell(value))
        count += 1
    for column in columns.values():
        column.extend([None] * (count - len(column)))
    return Table(source, columns, numbers, unit)


def as_cell(value: object) -> Cell:
    """A value as text: numbers as written, true, false and lists as in JSON; NaN is no value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)
