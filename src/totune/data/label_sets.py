"""Several labels per row: as lists, as texts such as "joy|anger", or as columns of 0 and 1.

Whatever the shape, a label is a tuple of names, sorted, each once. Columns of 0 and 1 are named as
one, with commas between: "joy,anger".
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from totune.data.examples import Columns, Examples, Label, classes_of
from totune.data.profiles import LABEL_NAMES, Profile
from totune.data.tables import Cell, Remarks, SourceTable, WordList, class_name, read_words
from totune.errors import DataError
from totune.text import counted

SEPARATOR = "|"  # between the labels of a row where they are one text
OTHER_SEPARATORS = (";", ",")  # read only where they are asked for: class names hold them too
_MIN_COLUMNS = 3  # of 0 and 1 that are read as labels unasked; two may be anything
_REUSED = 0.5  # share of the names in joined texts that occur in another text too
_MOST_WORDS = 6  # of a name
_SHOWN = 30  # labels that a note counts
_NAMES = LABEL_NAMES | frozenset("tags tag genres genre categories topics emotions classes".split())
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
        values = [_binary(cell) for cell in cells]
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


def _binary(cell: Cell) -> bool | None:
    return _BINARY.get((class_name((cell or "").strip()) or "").lower())


def _split(cell: Cell, separator: str) -> WordList | None:
    """The names in a cell: the items of a list, or the parts of a text; of "" none."""
    if cell is None:
        return None
    items = _items(cell)
    if items is None:
        items = tuple(cell.split(separator)) if cell.strip() else ()
    return tuple(class_name(item.strip()) or "" for item in items)


def _items(cell: Cell) -> WordList | None:
    """The items of a list, in JSON or as Python writes it (which pandas saves to csv)."""
    items = read_words(cell)
    if items is not None or cell is None or not (cell.startswith("[") and cell.endswith("]")):
        return items
    try:
        found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return tuple(map(str, found)) if all(isinstance(item, str | int) for item in found) else None


def find_label_sets(
    table: SourceTable,
    found: Mapping[str, Profile],
    ranked: Sequence[str],
    label: str | None,
    asked: bool,
    separator: str,
) -> str | None:
    """The column (or columns, with commas between) of labels if rows have several.

    Args:
        table: the train split.
        found: the profiles of all columns that are no text.
        ranked: the columns that look like single labels, the likeliest first.
        label: as named by a person.
        asked: whether a person said that rows have several labels.
        separator: between the labels of a text.

    Returns:
        None where rows have one label.
    """
    if label is not None:
        several = asked or has_several_columns(table, label)
        return label if several or _holds_several(table.columns[label], separator) else None
    top = ranked[0] if ranked else None
    if top is not None and _holds_several(table.columns[top], separator):
        return top
    usual = [name for name in found if found[name].last_word in _NAMES]
    if not asked and top is not None and top in usual:
        return None
    rest = [name for name in found if not found[name].ignored]
    holding = [name for name in rest if _holds_several(table.columns[name], separator)]
    named = [name for name in holding if name in usual]
    if named or (holding and (asked or top is None)):
        return [*named, *holding][0]
    binary = _binary_columns(table, found)
    worded = [name for name in ranked if found[name].numeric < 0.5 and name not in binary]
    if len(binary) >= (2 if asked else _MIN_COLUMNS) and (asked or not worded):
        return ",".join(binary)
    return top if asked else None


def _binary_columns(table: SourceTable, found: Mapping[str, Profile]) -> list[str]:
    """The columns of 0 and 1 that are no bookkeeping; a name with a comma cannot be one of many."""
    return [
        name
        for name, profile in found.items()
        if not profile.ignored and "," not in name and _is_binary(table.columns[name])
    ]


def _is_binary(cells: Sequence[Cell]) -> bool:
    """Whether all cells are 0 or 1 (or true or false), empty ones left aside."""
    given = [cell for cell in cells if cell is not None and cell.strip()]
    return bool(given) and all(_binary(cell) is not None for cell in given)


def _holds_several(cells: Sequence[Cell], separator: str) -> bool:
    """Whether cells are lists, or texts made of names that other texts are made of too."""
    given = [cell for cell in cells if cell is not None and cell.strip()]
    lists = sum(_items(cell) is not None for cell in given)
    return 2 * lists > len(given) > 0 or _is_joined(given, separator)


def _is_joined(cells: Sequence[str], separator: str) -> bool:
    texts: dict[str, set[str]] = defaultdict(set)  # by name, those that it occurs in
    joined: set[str] = set()
    for cell in set(cells):
        names = {name.strip() for name in cell.split(separator) if name.strip()}
        if any(len(name.split()) > _MOST_WORDS for name in names):
            return False
        joined |= names if len(names) > 1 else set()
        for name in names:
            texts[name].add(cell)
    reused = sum(len(texts[name]) > 1 for name in joined)
    return bool(joined) and reused >= _REUSED * len(joined)


def ask_for_separator(table: SourceTable, label: str, separator: str, asked: bool) -> list[str]:
    """A note where labels look like several per row that are read as one.

    Raises:
        DataError: several labels were asked for, and no row has them with this separator.
    """
    cells = [cell for cell in table.columns.get(label, ()) if cell is not None and cell.strip()]
    others = [
        other
        for other in (SEPARATOR, *OTHER_SEPARATORS)
        if other != separator or not asked
        if _is_joined(cells, other) or (other == SEPARATOR and any(other in c for c in cells))
    ]
    if not others or (asked and _holds_several(cells, separator)):
        return []
    shown = next(cell for cell in cells if others[0] in cell)[:40]
    if asked:
        raise DataError(
            f"{table.source}: no row of column {label!r} has several labels with {separator!r} "
            f"between them. Values such as {shown!r} have {others[0]!r}: say "
            f"`label_separator={others[0]!r}`."
        )
    return [
        f"Labels such as {shown!r} are read as one class each. If they are several labels per row, "
        f"say `task='multi-label'` and `label_separator={others[0]!r}`."
    ]


def ask_for_columns(table: SourceTable, found: Mapping[str, Profile], label: str) -> list[str]:
    """A note where the chosen label is one of several columns of 0 and 1 without a usual name."""
    if label not in found or found[label].last_word in _NAMES:
        return []
    binary = _binary_columns(table, found)
    if label not in binary or len(binary) < 2:
        return []
    names = ",".join(binary)
    return [
        f"{counted(len(binary), 'column')} hold 0 and 1 alone. If they are labels of which a row "
        f"can have several, say `label={names!r}`."
    ]


def say_label_sets(table: SourceTable, columns: Columns) -> str:
    """Where several labels per row are read from, as a part of a sentence."""
    names = label_columns(table, columns.label)
    if len(names) > 1:
        return f"labels from {len(names)} columns of 0 and 1 ({', '.join(names)})"
    cells = [cell for cell in table.columns[names[0]] if cell is not None and cell.strip()]
    lists = sum(_items(cell) is not None for cell in cells)
    between = (
        "as lists"
        if 2 * lists > len(cells)
        else f"{columns.label_separator or SEPARATOR!r} between them"
    )
    return f"any number of labels per row ({between}) from {names[0]!r}"


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
