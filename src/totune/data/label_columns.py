"""Which columns hold several labels per row: what a person named, or what their cells show.

What might be several labels and is read as one class is asked about, never silently chosen.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from totune.data.examples import Columns
from totune.data.label_sets import (
    SEPARATOR,
    applies,
    has_several_columns,
    label_columns,
    names_of_list,
)
from totune.data.profiles import LABEL_NAMES, SAMPLE, Profile
from totune.data.tables import Cell, SourceTable
from totune.data.tagging.columns import WORD_NAMES
from totune.errors import DataError
from totune.text import counted

OTHER_SEPARATORS = (";", ",")  # read only where they are asked for: class names hold them too
_MIN_COLUMNS = 3  # of 0 and 1 that are read as labels unasked; two may be anything
_REUSED = 0.5  # share of the names in joined texts that occur in another text too
_MOST_WORDS = 6  # of a name
_NAMES = LABEL_NAMES | frozenset("tags tag genres genre categories topics emotions classes".split())


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
    rest = [name for name in found if not found[name].ignored and name not in WORD_NAMES]
    holding = [name for name in rest if _holds_several(table.columns[name], separator)]
    named = [name for name in holding if name in usual]
    binary = _binary_columns(table, found)
    other = {*holding, *binary}
    worded = [name for name in ranked if found[name].numeric < 0.5 and name not in other]
    if (named and not worded) or (holding and (asked or top is None)):
        return [*named, *holding][0]
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
    return bool(given) and all(applies(cell) is not None for cell in given)


def _holds_several(cells: Sequence[Cell], separator: str) -> bool:
    """Whether cells are lists, or texts made of names that other texts are made of too.

    Lists that mostly repeat an item are rather the words of a sentence, or their tags.
    """
    given = _sample(cells)
    lists = [names for cell in given if (names := names_of_list(cell)) is not None]
    if 2 * len(lists) > len(given):
        return 2 * sum(len(set(names)) < len(names) for names in lists) <= len(lists)
    return _is_joined(given, separator)


def _sample(cells: Sequence[Cell]) -> list[str]:
    """Cells that hold something, of at most about `SAMPLE` rows, evenly spread."""
    chosen = cells[:: max(1, len(cells) // SAMPLE)]
    return [cell for cell in chosen if cell is not None and cell.strip()]


def _is_joined(cells: Sequence[str], separator: str) -> bool:
    """Whether cells hold several names, at least half of which other cells hold too."""
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
    cells = _sample(table.columns.get(label, ()))
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
    lists = sum(names_of_list(cell) is not None for cell in cells)
    separator = columns.label_separator or SEPARATOR
    between = "as lists" if 2 * lists > len(cells) else f"{separator!r} between them"
    return f"any number of labels per row ({between}) from {names[0]!r}"
