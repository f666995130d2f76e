"""Several labels per row: as lists, as texts such as "joy|anger", or as columns of 0 and 1.

Whatever the shape, a label is a tuple of names, sorted, each once. Columns of 0 and 1 are named as
one, with commas between: "joy,anger".
"""

import ast
from collections import Counter
from collections.abc import Sequence

import numpy as np

from totune.data.examples import Columns, Examples, Label, classes_of
from totune.data.tables import Cell, Remarks, SourceTable, WordList, class_name, read_words
from totune.errors import DataError
from totune.text import counted

SEPARATOR = "|"  # between the labels of a row where they are one text
_SHOWN = 30  # labels that a note counts
_BINARY = {"0": False, "1": True, "false": False, "true": True}


def label_columns(table: SourceTable, label: str | None) -> tuple[str, ...]:
    """The columns that `label` stands for: itself, or several with commas between."""
    if label is None or label in table.columns:
        return (label,) if label else ()
    return tuple(label.split(","))


def has_several_columns(table: SourceTable, label: str | None) -> bool:
    """Whether `label` stands for several columns."""
    return len(label_columns(table, label)) > 1


def read_label_sets(table: SourceTable, columns: Columns) -> list[Label | None]:
    """The labels of each row, sorted; none where no label applies, None where that is not known.

    Raises:
        DataError: a column of 0 and 1 holds something else.
    """
    return [
        None if names is None else tuple(sorted({name for name in names if name}))
        for names in _names(table, columns)
    ]


def remark_label_sets(table: SourceTable, columns: Columns, remarks: Remarks) -> None:
    """Remarks on what was read of the labels otherwise than it is written, with places."""
    rows = _names(table, columns)
    twice = [
        at
        for at, row in enumerate(rows)
        if row and max(Counter(filter(None, row)).values(), default=0) > 1
    ]
    empty = [at for at, row in enumerate(rows) if row and "" in row]
    for at, what, done in (
        (twice, "the same label twice", "counted once"),
        (empty, "an empty label", "which is ignored"),
    ):
        if at:
            remarks.notes.append(
                f"{table.source}: {counted(len(at), 'row')} with {what}, {done} "
                f"({table.place(at)})."
            )


def _names(table: SourceTable, columns: Columns) -> list[WordList | None]:
    """The names in each row as they are written: repeated and empty ones too."""
    names = label_columns(table, columns.label)
    if not all(name in table.columns for name in names):
        return []
    if len(names) > 1:
        return _applying(table, names)
    return [_split(cell, columns.label_separator or SEPARATOR) for cell in table.columns[names[0]]]


def _applying(table: SourceTable, names: Sequence[str]) -> list[WordList | None]:
    """Which of several columns of 0 and 1 hold 1."""
    found: list[WordList | None] = []
    for at, cells in enumerate(zip(*(table.columns[name] for name in names), strict=True)):
        values = [applies(cell) for cell in cells]
        for name, cell, value in zip(names, cells, values, strict=True):
            if value is None and (cell or "").strip():
                raise DataError(
                    f"{table.source}, {table.place([at])}: the label column {name!r} holds "
                    f"{(cell or '')[:40]!r}, not 0 or 1. Where a column for each label is named, "
                    "1 says that the label applies to the row."
                )
        known = all(value is not None for value in values)
        pairs = zip(names, values, strict=True)
        found.append(tuple(name for name, value in pairs if value) if known else None)
    return found


def applies(cell: Cell) -> bool | None:
    """Whether a cell holds 1 (or true), None if it holds neither that nor 0."""
    return _BINARY.get((class_name((cell or "").strip()) or "").lower())


def _split(cell: Cell, separator: str) -> WordList | None:
    """The names in a cell: the items of a list, or the parts of a text; of "" none."""
    if cell is None:
        return None
    items = names_of_list(cell)
    if items is None:
        items = tuple(cell.split(separator)) if cell.strip() else ()
    return tuple(class_name(item.strip()) or "" for item in items)


def names_of_list(cell: Cell) -> WordList | None:
    """The items of a list in JSON, or as Python (and pandas) writes it; None if it is no list."""
    items = read_words(cell)
    if items is not None or cell is None or not (cell.startswith("[") and cell.endswith("]")):
        return items
    try:
        found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return tuple(map(str, found)) if all(isinstance(item, str | int) for item in found) else None


def rarest_labels(labels: Sequence[Label]) -> np.ndarray:
    """A stratum for each row, [N]: its label with the fewest rows; rows without one have their own.

    Rare labels decide, since frequent ones are spread evenly by any draw.
    """
    counts = Counter(name for label in labels for name in classes_of(label))
    rarest = [
        min(classes_of(label), key=lambda name: (counts[name], str(name)), default="")
        for label in labels
    ]
    return np.unique([str(name) for name in rarest], return_inverse=True)[1]


def describe_label_sets(train: Examples) -> str:
    """A note on the labels of the train split, with their counts."""
    labels = [classes_of(label) for label in train.labels or ()]
    counts = Counter(name for names in labels for name in names)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    shown = ", ".join(f"{name}: {count:,}" for name, count in ordered[:_SHOWN])
    more = f" and {len(ordered) - _SHOWN:,} more" if len(ordered) > _SHOWN else ""
    without = sum(not names for names in labels)
    return (
        f"Train rows have {counts.total() / max(1, len(labels)):.2f} labels on average "
        f"({without:,} of {len(labels):,} have none). {counted(len(ordered), 'label')}: "
        f"{shown}{more}."
    )


def check_label_sets(train: Examples, source: str) -> list[str]:
    """Warnings on the labels of the train split.

    Raises:
        DataError: there are fewer than two labels, or all rows have the same.
    """
    labels = train.labels or ()
    names = sorted({str(name) for label in labels for name in classes_of(label)})
    if len(names) < 2:
        have = f"one label only, {names[0]!r}" if names else "no label"
        raise DataError(
            f"{source}: the {len(labels):,} usable train rows have {have}; several labels per row "
            "need at least two. For a label that applies or not, give one column and say "
            "`task='classification'`."
        )
    if len(set(labels)) == 1:
        raise DataError(
            f"{source}: all {len(labels):,} usable train rows have the same labels "
            f"({', '.join(names)}); there is nothing to learn. Is it the right `label` column?"
        )
    if all(len(classes_of(label)) == 1 for label in labels):
        return [
            "Every train row has exactly one label, so these are classes: `task='classification'` "
            "fits them better."
        ]
    return []
