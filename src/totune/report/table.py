"""A table as plain data: what every table of a report or a recipe is, before it is drawn."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from totune.report import formatting

Value = str | float | int | bool | None | list[Any] | dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A value and how it is shown.

    Attributes:
        value: the number or word itself, as it goes into JSON.
        text: what a person reads.
        detail: a second, smaller line (the interval under a mean), or "".
    """

    value: Value
    text: str
    detail: str = ""


@dataclass(frozen=True)
class Column:
    """A column's heading; numbers are aligned right."""

    name: str
    numeric: bool = True


@dataclass(frozen=True)
class Row:
    """One row; `mark` says why it stands out ("recommended", "failed"), or is ""."""

    cells: tuple[Cell, ...]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table with notes below it.

    Raises:
        ValueError: when a row has more or fewer cells than there are columns.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{self.title}: row {number} has {len(row.cells)} cells"
                    f" for {len(self.columns)} columns"
                )

    def values(self, column: str) -> list[Value]:
        """The values of one column, top to bottom."""
        at = [c.name for c in self.columns].index(column)
        return [row.cells[at].value for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; what cells hold is escaped."""
        join = Markup("").join
        heads = join(Markup("<th>{}</th>").format(column.name) for column in self.columns)
        lines = (
            join(Markup("<td>{}</td>").format(cell.text) for cell in row.cells) for row in self.rows
        )
        body = join(Markup("<tr>{}</tr>").format(line) for line in lines)
        notes = join(Markup("<p><small>{}</small></p>").format(note) for note in self.notes)
        table = Markup("<table><caption>{}</caption><tr>{}</tr>{}</table>{}")
        return str(table.format(self.title, heads, body, notes))

    def __str__(self) -> str:
        """The table as aligned text, its notes below."""
        heading = tuple(column.name for column in self.columns)
        lines = [heading, *(tuple(cell.text for cell in row.cells) for row in self.rows)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(heading))]
        numeric = [column.numeric for column in self.columns]
        aligned = [
            "  ".join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *aligned, *self.notes])


def word(text: str, detail: str = "") -> Cell:
    """A cell that holds a word; an empty one shows a dash."""
    return Cell(text, text or formatting.MISSING, detail)


def number(value: float | None, text: str, detail: str = "") -> Cell:
    """A cell that holds a number; one that is not finite is not known."""
    known = value is not None and math.isfinite(value)
    return Cell(value if known else None, text, detail)


def span(low: float, high: float, text: str) -> Cell:
    """A cell that holds both ends of an interval."""
    known = math.isfinite(low) and math.isfinite(high)
    return Cell([low, high] if known else None, text)


def drop_empty_columns(table: Table) -> Table:
    """The table without the columns in which no row knows a value."""
    kept = [
        at
        for at in range(len(table.columns))
        if any(row.cells[at].value not in (None, "") for row in table.rows)
    ]
    return Table(
        table.title,
        tuple(table.columns[at] for at in kept),
        tuple(Row(tuple(row.cells[at] for at in kept), row.mark) for row in table.rows),
        table.notes,
    )


def fact_table(title: str, facts: Mapping[str, Any]) -> Table:
    """A mapping as a table of two columns, one fact per row; unknown facts are left out.

    Args:
        title: the table's title.
        facts: JSON values by name; the name's ending gives the unit ("..._bytes", "..._seconds").
    """
    rows = tuple(
        Row((word(_heading(name)), Cell(value, formatting.plain(value, name))))
        for name, value in facts.items()
        if value not in (None, "", [], {}, ())
    )
    return Table(title, (Column("", numeric=False), Column("", numeric=False)), rows)


def _heading(name: str) -> str:
    for unit in ("_bytes", "_seconds"):
        name = name.removesuffix(unit)
    name = name.replace("_", " ")
    return name[:1].upper() + name[1:]
