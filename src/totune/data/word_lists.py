"""Cells that hold lists: the words of a sentence, or their tags."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from totune.data.tables import Cell, Table, as_cell

SAMPLE = 1000  # rows, evenly spread, that columns are judged by
Words = tuple[str, ...]


def read_words(cell: Cell) -> Words | None:
    """The words of a list; None where the cell holds none. A word that is null is empty."""
    items = _as_list(cell)
    return None if items is None else tuple(as_cell(item) or "" for item in items)


def read_tags(cell: Cell) -> Words | None:
    """The tags of a list, numbers as written; None where there is no list or a tag is missing."""
    tags = read_words(cell)
    return None if tags is None or not all(tag.strip() for tag in tags) else tags


@dataclass(frozen=True)
class ListColumn:
    """A column of lists: those of a sample of its rows, and what they look like.

    Attributes:
        lists: one for each sampled row, None where there is no value.
        worded: whether all items are strings.
    """

    name: str
    lists: tuple[Words | None, ...]
    worded: bool

    @property
    def distinct(self) -> int:
        """How many different items there are."""
        return len({item for items in self.lists for item in items or ()})

    @property
    def mean_length(self) -> float:
        """Mean number of items per list."""
        lengths = [len(items) for items in self.lists if items is not None]
        return sum(lengths) / max(1, len(lengths))

    def fits(self, other: "ListColumn") -> bool:
        """Whether most rows have lists of the same length in both columns."""
        both = [(a, b) for a, b in zip(self.lists, other.lists, strict=True) if a and b]
        return 2 * sum(len(a) == len(b) for a, b in both) > len(both)


def list_columns(table: Table) -> Mapping[str, ListColumn]:
    """The columns whose sampled values are lists of words or numbers, most of them, in order."""
    at = np.linspace(0, len(table) - 1, num=min(len(table), SAMPLE)).astype(int)
    found = {}
    for name, cells in table.columns.items():
        column = _list_column(name, [cells[i] for i in at])
        if column is not None:
            found[name] = column
    return found


def _list_column(name: str, cells: Sequence[Cell]) -> ListColumn | None:
    lists = [read_words(cell) for cell in cells]
    items = [item for cell in cells for item in _as_list(cell) or ()]
    given = sum(cell is not None for cell in cells)
    # A few broken cells must not hide a column: another would be taken for the words.
    if not items or 2 * sum(items is not None for items in lists) <= given:
        return None
    return ListColumn(name, tuple(lists), all(isinstance(item, str) for item in items))


def _as_list(cell: Cell) -> list[Any] | None:
    """The items of a JSON list of plain values, None if the cell is nothing of that kind."""
    if cell is None or not cell.startswith("["):
        return None
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(items, list) and not any(isinstance(item, list | dict) for item in items)
    return items if plain else None
