"""From a table to examples: what cannot be used is left out, and counted with its place."""

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from totune.data.columns import require
from totune.data.delimited import NUMBER
from totune.data.examples import Columns, Examples, Label, TaskName, classes_of
from totune.data.label_sets import label_columns, read_label_sets, remark_label_sets
from totune.data.tables import Cell, Remarks, SourceTable, class_name, read_tags
from totune.errors import DataError
from totune.text import counted

MISSING_WORDS = frozenset("nan none null n/a na <na>".split())  # how programs write no value
LARGEST_SCORE = 1e15  # whose squares sum up to a number in float32
MAX_CHARACTERS = 100_000  # of one text; no encoder here reads more than a fraction of it
_CUT = f"cut to the first {MAX_CHARACTERS:,} characters"


def extract(table: SourceTable, columns: Columns, remarks: Remarks) -> Examples:
    """The rows of `table` that have their texts and their label.

    Args:
        table: the rows.
        columns: of texts and labels.
        remarks: is told what was left out or changed, with places.

    Raises:
        DataError: a column is missing or no row is usable.
    """
    texts, long = _texts(require(table, columns.text, "text"))
    pairs, long_pairs = (None, set[int]())
    if columns.pair is not None:
        pairs, long_pairs = _texts(require(table, columns.pair, "pair"))
    labels = _labels(table, columns)
    empty = [i for i, row in enumerate(zip(texts, pairs or texts, strict=True)) if "" in row]
    without_text = set(empty)
    unlabelled = [i for i, label in enumerate(labels) if label is None and i not in without_text]
    blank = table.blanks.get(columns.label or "")
    left = Remarks()
    if blank is not None and unlabelled:
        left.notes.append(f"{table.source}: {counted(len(unlabelled), f'{blank} row')} left out.")
    left.warnings += [
        *left_out(table, empty, f"row without {_text_names(columns)}"),
        *left_out(table, [] if blank else unlabelled, f"row without a usable {columns.label!r}"),
        *left_out(table, sorted(long | long_pairs), "text", _CUT),
        *(_ask_about_missing(table, labels) if columns.task == "classification" else ()),
    ]
    dropped = without_text | set(unlabelled)
    kept = [i for i in range(len(table)) if i not in dropped]
    if not kept:
        raise nothing_left(table, left)
    remarks.add(left)
    if columns.task == "multi-label":
        remark_label_sets(table, columns, remarks)
    documents = table.columns.get(columns.document or "")
    groups = table.columns.get(columns.group or "")
    whole = table.whole
    return Examples(
        texts=tuple(texts),
        pairs=None if pairs is None else tuple(pairs),
        labels=tuple("" if label is None else label for label in labels),
        rows=tuple(table.rows),
        documents=None if documents is None else number_documents(documents),
        whole=None if whole is None else tuple(i in whole for i in range(len(table))),
        groups=None if groups is None else number_documents(groups),
    ).take(kept)


def nothing_left(table: SourceTable, left: Remarks) -> DataError:
    """The error of a table of which every row was left out."""
    return DataError(
        f"{table.source} holds no usable row. " + " ".join([*left.notes, *left.warnings])
    )


def _ask_about_missing(table: SourceTable, labels: Sequence[Label | None]) -> list[str]:
    """Asks about labels that say in a word that there is none."""
    places: dict[str, list[int]] = {}
    for at, label in enumerate(labels):
        if isinstance(label, str) and label.lower() in MISSING_WORDS:
            places.setdefault(label, []).append(at)
    return [
        f"{table.source}: the label of {counted(len(at), 'row')} is the word {label!r} "
        f"({table.place(at)}), which is read as a class. If it means that there is no label, empty "
        "these cells, and the rows are left out; if it is a class, a name of its own says so."
        for label, at in places.items()
    ]


def clean_text(cell: Cell) -> tuple[str, bool]:
    """A text without space around it, at most `MAX_CHARACTERS` long, and whether it was cut."""
    text = (cell or "").strip()
    if not text.isascii():  # half a surrogate pair, which JSON can hold, is no text
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text[:MAX_CHARACTERS], len(text) > MAX_CHARACTERS


def has_labels(
    table: SourceTable, columns: Columns, known: frozenset[str | float] | None = None
) -> bool:
    """Whether a split is labelled: it has the column, and more in it than one placeholder.

    Args:
        table: the split.
        columns: what the train split's columns are.
        known: the classes (or tags) of the train split; a split whose only value is none of them
            ("-1" or "?" in every row) counts as unlabelled.
    """
    labels = labels_of(table, columns)
    values = {value for label in labels if label is not None for value in classes_of(label)}
    placeholder = known is not None and len(values) == 1 and not values & known
    return bool(values) and not placeholder


def left_out(
    table: SourceTable, indices: Sequence[int], what: str, done: str = "left out"
) -> list[str]:
    """A sentence on rows that cannot be used as they are, if there are any: how many and where."""
    if not indices:
        return []
    noun, *rest = what.split(" ", 1)
    counts = " ".join([counted(len(indices), noun), *rest])
    return [f"{table.source}: {counts}, {done} ({table.place(indices)})."]


def read_labels(cells: Sequence[Cell], task: TaskName) -> list[Label | None]:
    """Each cell as a label: a class name, a score, or a tuple of tags; None where there is none."""
    if task == "tagging":
        return [read_tags(cell) for cell in cells]
    stripped = [(cell or "").strip() for cell in cells]
    return [_score(cell) if task == "regression" else class_name(cell) for cell in stripped]


def labels_of(table: SourceTable, columns: Columns) -> list[Label | None]:
    """The label of each row, None where there is none; empty without such a column."""
    if columns.task == "multi-label":
        return read_label_sets(table, columns)
    cells = table.columns.get(columns.label or "")
    return [] if cells is None else read_labels(cells, columns.task)


def number_documents(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Numbers documents from 0 in the order they come; a row without a value is its own."""
    numbers: dict[str | int, int] = {}
    keys = [at if cell is None else cell for at, cell in enumerate(cells)]
    return tuple(numbers.setdefault(key, len(numbers)) for key in keys)


def stand_together(documents: Sequence[int]) -> bool:
    """Whether no document is interrupted by another."""
    return len(list(groupby(documents))) == len(set(documents))


def gather(examples: Examples) -> Examples:
    """The same rows with those of one document together, documents and rows in their order."""
    documents = examples.documents
    if documents is None or stand_together(documents):
        return examples
    return examples.take(np.argsort(np.asarray(documents), kind="stable"))


def _texts(cells: Sequence[Cell]) -> tuple[list[str], set[int]]:
    cleaned = [clean_text(cell) for cell in cells]
    return [text for text, _ in cleaned], {i for i, (_, cut) in enumerate(cleaned) if cut}


def _labels(table: SourceTable, columns: Columns) -> list[Label | None]:
    assert columns.label is not None
    for name in label_columns(table, columns.label):
        require(table, name, "label")
    labels = labels_of(table, columns)
    if columns.task == "regression" and not any(label is not None for label in labels):
        shown = next((cell for cell in table.columns[columns.label] if cell), "nothing")
        raise DataError(
            f"{table.source}: regression needs numbers, but column {columns.label!r} holds none "
            f"(the first value is {shown[:40]!r}). Name another with `label`, or choose "
            "`task='classification'`."
        )
    return labels


def _text_names(columns: Columns) -> str:
    if columns.pair is None:
        return f"text in {columns.text!r}"
    return f"text in {columns.text!r} or {columns.pair!r}"


def _score(cell: str) -> float | None:
    value = float(cell) if NUMBER.fullmatch(cell) else math.nan
    return value if abs(value) <= LARGEST_SCORE else None
