"""Which column is the text, the second text, the label; and the task that follows.

Names and content both count. What a person names is taken as it is; what is chosen is said, with
how to choose otherwise.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from totune.data.examples import Columns, TaskName
from totune.data.label_columns import (
    ask_for_columns,
    ask_for_separator,
    find_label_sets,
    say_label_sets,
)
from totune.data.label_sets import SEPARATOR, has_several_columns
from totune.data.profiles import (
    BESIDE_NAMES,
    LABEL_NAMES,
    TEXT_NAMES,
    Profile,
    infer_task,
    profiles,
)
from totune.data.tables import Cell, SourceTable
from totune.data.tagging.columns import NamedColumns, find_tagging, refuse_lists
from totune.errors import DataError
from totune.registry import did_you_mean
from totune.text import counted

PAIR_NAMES = (
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("question", "answer"),
    ("question", "passage"),
    ("question", "context"),
    ("query", "document"),
    ("query", "passage"),
    ("query", "text"),
    ("text", "pair"),
)
_SIDES = {"1": "2", "a": "b", "first": "second", "left": "right"}
_MAX_RIVALS = 4


def find_columns(
    table: SourceTable,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    task: TaskName | None = None,
    label_separator: str = SEPARATOR,
    group: str | None = None,
) -> tuple[Columns, list[str]]:
    """Decides what each column of the train split is.

    Args:
        table: the train split; the task follows from its labels alone.
        text: the column of texts or of lists of words, if named (by its name, or by its number
            counted from 1); then a second text is read only if `pair` names one.
        pair: the column of second texts, if named, likewise.
        label: the column of labels or of lists of tags, if named, likewise; or several columns of
            0 and 1, one for each label, with commas between.
        task: "classification", "multi-label", "regression" or "tagging", if named.
        label_separator: between several labels of a row where they are one text.
        group: the column of groups that are drawn whole, if named.

    Returns:
        The columns, and sentences that say what was chosen and what else might have been.

    Raises:
        DataError: a named column does not exist, or no column fits.
    """
    named = _resolved(table, {"text": text, "pair": pair, "label": label, "group": group})
    text, pair, label = named["text"], named["pair"], named["label"]
    group = named.pop("group")
    _refuse_several(table, label, task)
    tagging = find_tagging(table, named, task)
    if tagging is not None:
        if group is not None:
            raise DataError(
                f"{table.source}: `group` is for data with a text per row; where words are tagged "
                "documents are kept together. Leave it out."
            )
        return tagging[0], _say_tagging(*tagging, label)
    apart = {table.document, group} - {pair}
    found = {n: p for n, p in profiles(table).items() if n not in apart}
    if text is None:
        text, pair = _find_texts(table, found, pair, label)
    texts = (*split_names(table, text), *split_names(table, pair or ""))
    ranked = _ranked_labels(found, texts)
    several = None
    rest = {name: p for name, p in found.items() if name not in texts}
    if task in (None, "multi-label"):
        asked = task is not None
        several = find_label_sets(table, rest, ranked, label, asked, label_separator)
    chosen = several or label or _best_label(table, rest, ranked)
    chosen_task = task or ("multi-label" if several else infer_task(table.columns[chosen]))
    if chosen_task != "multi-label":
        refuse_lists(table, chosen, chosen_task)
    separator = label_separator if chosen_task == "multi-label" else None
    columns = Columns(text, chosen, pair, chosen_task, table.document, separator, group)
    notes = _say(table, columns, named, found)
    return columns, notes + _ask(table, columns, named["label"], task, rest)


def find_texts(
    table: SourceTable, text: str | None = None, pair: str | None = None
) -> tuple[str, str | None]:
    """Decides which columns hold the texts, where labels do not matter.

    Args:
        table: rows to judge by.
        text: the column of texts, if named (by its name, or by its number counted from 1); then a
            second text is read only if `pair` names one. A table of one column is read whatever
            its name.
        pair: the column of second texts, if named, likewise.

    Raises:
        DataError: a named column does not exist, or no column looks like text.
    """
    named = _resolved(table, {"text": text, "pair": pair})
    text, pair = named["text"], named["pair"]
    if text is not None:
        return text, pair
    if len(table.columns) == 1 and pair is None:
        return next(iter(table.columns)), None
    return _find_texts(table, profiles(table), pair, None)


def require(table: SourceTable, name: str, option: str) -> list[Cell]:
    """The cells of column `name`; of several with commas between, their texts joined by a line end.

    Raises:
        DataError: there is none; lists the columns there are, the nearest first.
    """
    parts = split_names(table, name)
    if len(parts) > 1:
        several = zip(*(require(table, part, option) for part in parts), strict=True)
        return ["\n".join(filter(None, cells)) or None for cells in several]
    if name not in table.columns:
        raise DataError(
            f"{table.source} has no column {name!r} (`{option}`). "
            f"{did_you_mean(name, table.columns).replace('Known:', 'Its columns:')}"
        )
    return table.columns[name]


def split_names(table: SourceTable, names: str) -> list[str]:
    """The columns of a text that is made of several ("title,body"); else the one that is named."""
    if names in table.columns or "," not in names:
        return [names]
    return [name.strip() for name in names.split(",")]


def resolve(table: SourceTable, column: str, option: str) -> str:
    """The name of the column that `column` is the name of, or else the number, counted from 1.

    Of several texts with commas between, as `title,body` or `2,3`, the names.

    Raises:
        DataError: there is none.
    """
    names = list(table.columns)
    parts = split_names(table, column)
    if len(parts) > 1 and option in ("text", "pair"):
        return ",".join(resolve(table, part, option) for part in parts)
    if column in names or not column.isdecimal():
        require(table, column, option)
        return column
    if not 1 <= int(column) <= len(names):
        raise DataError(
            f"{table.source} has no column {column} (`{option}`): it has "
            f"{counted(len(names), 'column')}, counted from 1 ({', '.join(names)})."
        )
    return names[int(column) - 1]


def as_named(table: SourceTable, columns: Columns, named: NamedColumns) -> Columns:
    """The same columns but for those that a person named for this table.

    Raises:
        DataError: a named column does not exist, or is named twice.
    """
    found = _resolved(table, named)
    return replace(
        columns,
        text=found.get("text") or columns.text,
        pair=found.get("pair") or columns.pair,
        label=found.get("label") or columns.label,
    )


def _resolved(table: SourceTable, named: NamedColumns) -> dict[str, str | None]:
    """The names of the columns that a person named; of several label columns, joined by commas."""
    parts = {
        option: [column] if option != "label" or column in table.columns else column.split(",")
        for option, column in named.items()
        if column is not None
    }
    names = {
        option: [resolve(table, column.strip(), option) for column in columns]
        for option, columns in parts.items()
    }
    found = {option: ",".join(names[option]) if option in names else None for option in named}
    given = [name for columns in names.values() for name in columns]
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise DataError(f"Column {twice[0]!r} is named for two purposes; each needs its own.")
    return found


def _find_texts(
    table: SourceTable, found: Mapping[str, Profile], pair: str | None, label: str | None
) -> tuple[str, str | None]:
    if len(table.columns) < 2:
        raise DataError(
            f"{table.source} has one column only ({', '.join(table.columns)}); a text and a label "
            "are needed. Is it delimited as its name says (.csv by commas, .tsv and .txt by tabs)?"
        )
    free = {name: p for name, p in found.items() if name not in (pair, label) and not p.listed}
    texts = [p for p in free.values() if _text_score(p) > 0]
    if pair is None:
        both = _find_pair(texts, table.header)
        if both is not None:
            return both
    if not texts:
        lists = [name for name, p in found.items() if p.listed]
        tagging = f" Lists ({', '.join(lists)}) are read with `task='tagging'`." if lists else ""
        raise DataError(
            f"{table.source} has no column that looks like text. "
            f"Name one with `text`. Its columns: {', '.join(table.columns)}.{tagging}"
        )
    partners = [p for p in texts if pair is not None and _are_sides(p.words, found[pair].words)]
    return max(partners or texts, key=_text_score).name, pair


def _text_score(column: Profile) -> float:
    """How much a column looks like the text: by its name and the length of its values; 0 if not."""
    named = column.last_word in TEXT_NAMES and column.numeric < 0.5 and column.filled > 0
    if column.ignored and not named:
        return 0.0
    if not (column.reads_like_text or (named and column.distinct > 1)):
        return 0.0
    exact = column.words == (column.last_word,) and column.last_word not in BESIDE_NAMES
    name_score = 4.0 if named and exact else 2.0 if named else 0.0
    return name_score + math.log2(2 + column.mean_length / 5)


def _find_pair(texts: Sequence[Profile], header: bool) -> tuple[str, str] | None:
    """Two texts whose names belong together, or (without names) the only two, side by side."""
    prose = [column for column in texts if column.reads_like_text]
    for first, second in permutations(prose, 2):
        if _are_sides(first.words, second.words) and header:
            return first.name, second.name
        if (first.last_word, second.last_word) in PAIR_NAMES:
            return first.name, second.name
    if not header and len(prose) == 2:
        return prose[0].name, prose[1].name
    return None


def _are_sides(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether names differ by their side alone: sentence1 and sentence2, text_a and text_b."""
    split = [_with_side(words) for words in (first, second)]
    (base, side), (other_base, other_side) = split
    return base == other_base and _SIDES.get(side) == other_side


def _with_side(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """A name without its side, and the side: ("sentence",) and "1" for sentence1."""
    parts = [part for word in words for part in re.findall(r"[^\W\d]+|\d+", word)]
    sides = {*_SIDES, *_SIDES.values()}
    for at, part in enumerate(parts):
        if part in sides and len(parts) > 1:
            return tuple(parts[:at] + parts[at + 1 :]), part
    return tuple(parts), ""


def _refuse_several(table: SourceTable, label: str | None, task: TaskName | None) -> None:
    """Raises `DataError` if several label columns are named for a task of one label per row."""
    if has_several_columns(table, label) and task not in (None, "multi-label"):
        raise DataError(
            f"{table.source}: `label` names several columns, which is for `task='multi-label'` "
            f"(a column of 0 and 1 for each label). Name one column for {task}."
        )


def _best_label(table: SourceTable, found: Mapping[str, Profile], ranked: Sequence[str]) -> str:
    if not ranked:
        lists = [name for name, p in found.items() if p.listed]
        several = (
            f" Lists ({', '.join(lists)}) are read with `task='multi-label'`." if lists else ""
        )
        raise DataError(
            f"{table.source} has no column that looks like labels (values that repeat, or scores) "
            f"beside the text. Name one with `label`. Its columns: {', '.join(table.columns)}."
            f"{several}"
        )
    return ranked[0]


def _ranked_labels(found: Mapping[str, Profile], texts: Sequence[str | None]) -> list[str]:
    scores = {n: _label_score(p) for n, p in found.items() if n not in texts}
    return sorted((n for n in scores if scores[n] > 0), key=lambda n: -scores[n])


def _label_score(column: Profile) -> float:
    """How much a column looks like labels; 0 if not.

    Few different values, none missing, words rather than numbers, and a usual name all count.
    """
    named = column.last_word in LABEL_NAMES
    scored = column.numeric > 0.95 and column.whole < 0.95
    classes = column.repeats >= 2 or (named and column.distinct <= 20)
    if (
        column.ignored
        or column.listed
        or not (scored or classes or (named and column.numeric > 0.95))
    ):
        return 0.0
    if not named and (column.distinct < 2 or column.counts_rows):
        return 0.0
    exact = named and column.words == (column.last_word,)
    name_score = 6.0 if exact else 4.0 if named else 0.0
    words = 1.0 if column.numeric < 0.5 and column.mean_words < 10 else 0.0
    variety = 0.4 * math.log2(max(2, column.distinct))
    return max(0.1, 5.0 + name_score + words - variety - 6.0 * (1 - column.filled))


def _say(
    table: SourceTable, columns: Columns, named: NamedColumns, found: Mapping[str, Profile]
) -> list[str]:
    """Sentences on what was chosen; what a person named needs no words."""
    texts = (columns.text, *columns.text.split(","), columns.pair)
    read = f"Text is read from {columns.text!r}"
    if columns.pair is not None:
        read = f"Text pairs are read from {columns.text!r} and {columns.pair!r}"
    notes = [f"{read}, labels from {columns.label!r}; the task is {columns.task}."]
    if columns.task == "multi-label":
        notes = [f"{read}, {say_label_sets(table, columns)}; the task is multi-label."]
    if named["text"] is None:
        prose = [p for p in found.values() if p.reads_like_text and not p.listed]
        others = [p.name for p in prose if not p.ignored]
        notes += _rivals("texts", "text", [n for n in others if n not in (*texts, columns.label)])
    if named["label"] is None and columns.task != "multi-label":
        others = [name for name in _ranked_labels(found, texts) if name != columns.label]
        notes += _rivals("labels", "label", others)
    return notes


def _ask(
    table: SourceTable,
    columns: Columns,
    label: str | None,
    task: TaskName | None,
    found: Mapping[str, Profile],
) -> list[str]:
    """Sentences on whether rows have several labels, where a person named no task or no column."""
    several, chosen, notes = columns.task == "multi-label", columns.label or "", []
    if several and task is None and not has_several_columns(table, label):
        by_name = has_several_columns(table, chosen)
        other = "name it with `label`" if by_name else "say `task='classification'`"
        notes.append(f"Where each row has one class, {other}.")
    if several or task is None:
        notes += ask_for_separator(table, chosen, columns.label_separator or SEPARATOR, several)
    if label is None and task is None:
        notes += ask_for_columns(table, found, chosen)
    return notes


def _say_tagging(columns: Columns, others: Sequence[str], label: str | None) -> list[str]:
    documents = "" if columns.document is None else f", documents from {columns.document!r}"
    notes = [
        f"Words are read from {columns.text!r}, tags from {columns.label!r}{documents}; "
        "the task is tagging."
    ]
    return notes + (_rivals("tags", "label", others) if label is None else [])


def _rivals(what: str, option: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:_MAX_RIVALS])
    more = f" and {len(names) - _MAX_RIVALS} more" if len(names) > _MAX_RIVALS else ""
    return [f"Other columns that could hold {what}: {shown}{more}; name one with `{option}`."]
