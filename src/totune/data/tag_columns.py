"""Which columns hold words and which their tags: lists of the same lengths, and their names."""

from collections.abc import Mapping, Sequence
from itertools import permutations

from totune.data.examples import Columns, TaskName
from totune.data.profiles import LABEL_NAMES, name_words, profile
from totune.data.tables import Table
from totune.data.tag_schemes import is_tag
from totune.data.word_lists import ListColumn, list_columns
from totune.errors import DataError

WORD_NAMES = ("tokens", "words", "token", "word")  # the likeliest first
TAG_NAMES = ("tags", "labels", "tag", "label")
DOCUMENT_NAMES = ("document", "document_id", "doc_id")
_LESSER_TAGS = frozenset("pos upos xpos chunk chunks lemma lemmas morph feats deps".split())
_MOST_TAGS = 100  # more different values, and no usual name: these are words
_EXAMPLE = '{"tokens": ["To", "Paris"], "tags": ["O", "B-LOC"]}'

Named = Mapping[str, str | None]


def find_tagging(
    table: Table, named: Named, task: TaskName | None
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


def refuse_lists(table: Table, label: str, task: TaskName) -> None:
    """Raises `DataError` if the labels of another task than tagging are lists."""
    if label in list_columns(table):
        raise DataError(
            f"{table.source}: column {label!r} holds lists, which are no labels for {task}. "
            "Are words tagged? Then say `task='tagging'`. If not, name another column with `label`."
        )


def _best(lists: Mapping[str, ListColumn], named: Named) -> tuple[str, str] | None:
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
    table: Table, lists: Mapping[str, ListColumn], named: Named, words: str
) -> bool:
    if named["pair"] is not None:
        return False
    if named["text"] is not None or named["label"] is not None:
        return True
    plain = [profile(name, cells) for name, cells in table.columns.items() if name not in lists]
    labelled = any(p.last_word in LABEL_NAMES and p.repeats >= 2 for p in plain)
    other_task = labelled and any(p.reads_like_text for p in plain)
    return not other_task and (words in WORD_NAMES or lists[words].mean_length >= 2)


def _document(table: Table, used: Sequence[str]) -> str | None:
    """The column that tells documents apart: the format's, or one with a usual name."""
    names = ([] if table.document is None else [table.document]) + list(DOCUMENT_NAMES)
    return next((name for name in names if name in table.columns and name not in used), None)


def _misfit(table: Table, lists: Mapping[str, ListColumn], named: Named) -> DataError:
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
