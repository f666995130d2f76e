"""Which columns hold words and which their tags: lists of the same lengths, and their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from totune.data.examples import Columns, TaskName
from totune.data.profiles import LABEL_NAMES, name_words, profile
from totune.data.tables import Cell, SourceTable, WordList, list_items, read_words
from totune.data.tagging.schemes import is_tag
from totune.errors import DataError

WORD_NAMES = ("tokens", "words", "token", "word")  # the likeliest first
TAG_NAMES = ("tags", "labels", "tag", "label")
DOCUMENT_NAMES = ("document", "document_id", "doc_id")
_LESSER_TAGS = frozenset("pos upos xpos chunk chunks lemma lemmas morph feats deps".split())
_SAMPLE = 1000  # rows, evenly spread, that columns are judged by
_MOST_TAGS = 100  # more different values, and no usual name: these are words
_EXAMPLE = '{"tokens": ["To", "Paris"], "tags": ["O", "B-LOC"]}'

NamedColumns = Mapping[str, str | None]


@dataclass(frozen=True)
class ListColumn:
    """A column of lists: those of a sample of its rows, and what they look like.

    Attributes:
        lists: one for each sampled row, None where there is no value.
        worded: whether all items are strings.
    """

    name: str
    lists: tuple[WordList | None, ...]
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


def find_tagging(
    table: SourceTable, named: NamedColumns, task: TaskName | None
) -> tuple[Columns, list[str]] | None:
    """The columns of words and tags, if words are tagged here.

    They are if `task` says so; or else if the named columns are such, or (without names) if two
    columns are and no other text has labels of a usual name.

    Args:
        table: the train split.
        named: the columns a person named, by "text", "pair" and "label".
        task: as named by a person.

    Returns:
        The columns, and other columns that could hold tags; None where the task is another.

    Raises:
        DataError: the task is tagging but the columns do not fit it.
    """
    if task not in (None, "tagging"):
        return None
    lists = list_columns(table)
    found = _best(lists, named)
    if task is None and (found is None or not _speaks_for_tagging(table, lists, named, found[0])):
        return None
    if named["pair"] is not None:
        raise DataError("Tagging reads single sentences: `pair` cannot be used with it.")
    if found is None:
        raise _misfit(table, lists, named)
    words, tags, *_ = found
    columns = Columns(words, tags, task="tagging", document=_document(table, (words, tags)))
    others = [name for name, column in lists.items() if column.fits(lists[words])]
    return columns, [name for name in others if name not in (words, tags)]


def refuse_lists(table: SourceTable, label: str, task: TaskName) -> None:
    """Raises `DataError` if the labels of another task than tagging are lists."""
    if label in list_columns(table):
        raise DataError(
            f"{table.source}: column {label!r} holds lists, which are no labels for {task}. "
            "Are words tagged? Then say `task='tagging'`. Has a row several labels? Then say "
            "`task='multi-label'`. If not, name another column with `label`."
        )


def _best(lists: Mapping[str, ListColumn], named: NamedColumns) -> tuple[str, str] | None:
    """The likeliest columns of words and tags, among those that were named if any were."""
    pairs = [
        (words.name, tags.name)
        for words, tags in permutations(lists.values(), 2)
        if words.fits(tags)
        and named["text"] in (None, words.name)
        and named["label"] in (None, tags.name)
        and (words.worded or named["text"])
        and (_likely_tags(tags) or named["label"])
    ]
    ranked = sorted(pairs, key=lambda pair: (_word_rank(lists[pair[0]]), _tag_rank(lists[pair[1]])))
    return ranked[0] if ranked else None


def _word_rank(column: ListColumn) -> tuple[int, int]:
    """Usual names first, then the most different values."""
    usual = WORD_NAMES.index(column.name) if column.name in WORD_NAMES else len(WORD_NAMES)
    return usual, -column.distinct


def _tag_rank(column: ListColumn) -> int:
    """Entities, then columns that are called tags, then span tags, then others."""
    words = name_words(column.name)
    lesser = not _LESSER_TAGS.isdisjoint(words)
    if "ner" in words:
        return 0
    if column.name in TAG_NAMES:
        return 1
    if words and words[-1] in TAG_NAMES and not lesser:
        return 2
    spans = all(is_tag(tag) for tags in column.lists for tag in tags or ())
    return 4 if lesser else 3 if spans else 5


def _likely_tags(column: ListColumn) -> bool:
    return column.distinct <= _MOST_TAGS or _tag_rank(column) < 3


def _speaks_for_tagging(
    table: SourceTable, lists: Mapping[str, ListColumn], named: NamedColumns, words: str
) -> bool:
    if named["pair"] is not None:
        return False
    if named["text"] is not None or named["label"] is not None:
        return True
    plain = [profile(name, cells) for name, cells in table.columns.items() if name not in lists]
    labelled = any(p.last_word in LABEL_NAMES and p.repeats >= 2 for p in plain)
    other_task = labelled and any(p.reads_like_text for p in plain)
    return not other_task and (words in WORD_NAMES or lists[words].mean_length >= 2)


def _document(table: SourceTable, used: Sequence[str]) -> str | None:
    """The column that tells documents apart: the format's, or one with a usual name."""
    names = ([] if table.document is None else [table.document]) + list(DOCUMENT_NAMES)
    return next((name for name in names if name in table.columns and name not in used), None)


def _misfit(table: SourceTable, lists: Mapping[str, ListColumn], named: NamedColumns) -> DataError:
    """Why no columns fit the task."""
    for option, what in (("text", "words"), ("label", "tags")):
        name = named[option]
        if name is not None and name not in lists:
            return DataError(
                f"{table.source}: column {name!r} (`{option}`) holds no lists of {what}; tagging "
                f"needs rows such as {_EXAMPLE}, or a CoNLL file."
            )
    if not lists:
        return DataError(
            f"{table.source} has no column of word lists, which tagging needs: rows such as "
            f"{_EXAMPLE}, or a CoNLL file. Its columns: {', '.join(table.columns)}."
        )
    return DataError(
        f"{table.source} has no columns of words and of as many tags. Its columns of lists: "
        f"{', '.join(lists)}. Name them with `text` and `label`, and check that the lists of each "
        "row are of one length."
    )


def list_columns(table: SourceTable) -> Mapping[str, ListColumn]:
    """The columns whose sampled values are lists of words or numbers, most of them, in order."""
    at = np.linspace(0, len(table) - 1, num=min(len(table), _SAMPLE)).astype(int)
    found = {}
    for name, cells in table.columns.items():
        column = _list_column(name, [cells[i] for i in at])
        if column is not None:
            found[name] = column
    return found


def _list_column(name: str, cells: Sequence[Cell]) -> ListColumn | None:
    lists = [read_words(cell) for cell in cells]
    items = [item for cell in cells for item in list_items(cell) or ()]
    given = sum(cell is not None for cell in cells)
    # A few broken cells must not hide a column: another would be taken for the words.
    if not items or 2 * sum(items is not None for items in lists) <= given:
        return None
    return ListColumn(name, tuple(lists), all(isinstance(item, str) for item in items))
