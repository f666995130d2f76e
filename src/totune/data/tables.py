"""What every source is read into: rows that come one after the other, or a table of all of them."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import cached_property
from typing import Any

from totune.data.delimited import NUMBER
from totune.text import listed

SAMPLE = 1000  # rows that columns are judged by where rows are read one after the other

Cell = str | None
WordList = tuple[str, ...]
NumberedCells = tuple[int, list[Cell]]  # where a row stands in its source, and cells of it


@dataclass
class Remarks:
    """What a person should be told of data, one sentence each, in the order it was noticed.

    Attributes:
        notes: choices that were made, and what was left out without loss.
        warnings: what may spoil a result, with counts and places.
    """

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: "Remarks") -> None:
        self.notes += other.notes
        self.warnings += other.warnings


class RowReader(ABC):
    """Rows of one source, read anew each time they are gone through.

    Attributes:
        source: the name of the source in messages: a path, or a split of the hub.
    """

    source: str

    @property
    def total(self) -> int | None:
        """Number of rows, None where that is not known before they are read."""
        return None

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        """Yields the place of every row and its cells in `columns`, in their order.

        Raises:
            DataError: a row cannot be read.
        """

    @abstractmethod
    def table(self, most: int | None = None) -> "SourceTable":
        """All rows, or the first so many; rows that are malformed are left out and remarked.

        Raises:
            DataError: the source cannot be read, or most of its rows are malformed.
        """

    @cached_property
    def sample(self) -> "SourceTable":
        """The first rows, by which columns are judged."""
        return self.table(SAMPLE)


@dataclass(frozen=True)
class SourceTable:
    """Columns of text by name; numbers are kept as they were written.

    Attributes:
        source: the name of the source in messages: a file's path, or a split of the hub.
        columns: the cells of each column, None where there is no value.
        rows: the place of each row in the source, counted from 1.
        unit: what `rows` counts: "line" of a text file or "row" of a binary one.
        header: whether the source named its columns.
        ragged: places of rows that were left out, their number of fields being wrong.
        remarks: what was noticed while it was read.
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
    remarks: Remarks = field(default_factory=Remarks)
    document: str | None = None
    whole: frozenset[int] | None = None
    blanks: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, indices: Sequence[int]) -> str:
        """Where rows stand: "lines 3, 9 and 40 more"."""
        return listed([self.rows[i] for i in indices], self.unit)

    def take(self, indices: Sequence[int]) -> "SourceTable":
        """The rows at `indices`, in that order; all of them stand for themselves."""
        columns = {name: [cells[i] for i in indices] for name, cells in self.columns.items()}
        return replace(self, columns=columns, rows=[self.rows[i] for i in indices], whole=None)

    def without_parts(self) -> "SourceTable":
        """The rows that are no part of others."""
        return self if self.whole is None else self.take(sorted(self.whole))

    def renamed(self, names: Sequence[str]) -> "SourceTable":
        """The same table with its columns called `names`, in order."""
        return replace(self, columns=dict(zip(names, self.columns.values(), strict=True)))


class TableRows(RowReader):
    """The rows of a table that is in memory."""

    def __init__(self, table: SourceTable) -> None:
        self.source, self._table = table.source, table

    @property
    def total(self) -> int:
        return len(self._table)

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        cells = [self._table.columns[name] for name in columns]
        for number, *row in zip(self._table.rows, *cells, strict=True):
            yield number, row

    def table(self, most: int | None = None) -> SourceTable:
        return self._table if most is None else self._table.take(range(len(self._table))[:most])


def table_of(
    rows: Iterable[Mapping[str, Any]], source: str, numbers: Sequence[int], unit: str
) -> SourceTable:
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
    return SourceTable(source, columns, numbers, unit)


def as_cell(value: object) -> Cell:
    """A value as text: numbers as written, true, false and lists as in JSON; NaN is no value.

    Dates and times are in ISO 8601, bytes the text that they hold, or else hexadecimal digits.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list | tuple | dict | bool):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return _plain(value)


def _plain(value: object) -> str:
    """A value that JSON does not know, of a parquet file."""
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()
    return str(value)


def class_name(cell: str) -> Cell:
    """A stripped cell as the name of a class, None if it is empty.

    A whole number is written without a point, so that "1.0" and "1" agree.
    """
    if NUMBER.fullmatch(cell) and "." in cell and float(cell).is_integer():
        return str(int(float(cell)))
    return cell or None


def list_items(cell: Cell) -> list[Any] | None:
    """The items of a JSON list of plain values, None if the cell is nothing of that kind."""
    if cell is None or not cell.startswith("["):
        return None
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(items, list) and not any(isinstance(item, list | dict) for item in items)
    return items if plain else None


def read_words(cell: Cell) -> WordList | None:
    """The words of a list; None where the cell holds none. A word that is null is empty."""
    items = list_items(cell)
    return None if items is None else tuple(as_cell(item) or "" for item in items)


def read_tags(cell: Cell) -> WordList | None:
    """The tags of a list, numbers as written; None where there is no list or a tag is missing."""
    tags = read_words(cell)
    return None if tags is None or not all(tag.strip() for tag in tags) else tags
