"""From a table to examples: what cannot be used is left out, and counted with its place."""

from collections.abc import Sequence
from dataclasses import dataclass

from totune.data.columns import require
from totune.data.documents import number_documents
from totune.data.examples import Columns, Examples, Label
from totune.data.tables import Cell, Table
from totune.data.targets import classes_of, read_labels
from totune.data.wording import counted
from totune.errors import DataError

MAX_CHARACTERS = 100_000  # of one text; no encoder here reads more than a fraction of it


@dataclass(frozen=True)
class Extracted:
    """The usable rows of a table, with what to say of the others.

    Attributes:
        examples: the rows, those of one document together.
        warnings: what was lost or changed, with places.
        notes: what was left out without loss.
        whole: rows that stand for themselves, the others being parts of them that only training
            sees (phrases of a sentence); None where all do.
    """

    examples: Examples
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    whole: frozenset[int] | None = None


def extract(table: Table, columns: Columns) -> Extracted:
    """The rows of `table` that have their texts and their label.

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
    notes = [] if blank is None else _blank(table, blank, len(unlabelled))
    warnings = [
        *left_out(table, empty, f"row without {_text_names(columns)}"),
        *left_out(table, [] if blank else unlabelled, f"row without a usable {columns.label!r}"),
        *left_out(table, sorted(long | long_pairs), "text", _CUT),
    ]
    dropped = without_text | set(unlabelled)
    kept = [i for i in range(len(table)) if i not in dropped]
    if not kept:
        raise DataError(f"{table.source} holds no usable row. " + " ".join([*notes, *warnings]))
    documents = table.columns.get(columns.document or "")
    whole = Examples(
        texts=tuple(texts),
        pairs=None if pairs is None else tuple(pairs),
        labels=tuple("" if label is None else label for label in labels),
        rows=tuple(table.rows),
        documents=None if documents is None else number_documents(documents),
    )
    units = table.whole
    return Extracted(
        whole.take(kept),
        tuple(warnings),
        tuple(notes),
        None if units is None else frozenset(at for at, i in enumerate(kept) if i in units),
    )


def clean_text(cell: Cell) -> tuple[str, bool]:
    """A text without space around it, at most `MAX_CHARACTERS` long, and whether it was cut."""
    text = (cell or "").strip()
    if not text.isascii():  # half a surrogate pair, which JSON can hold, is no text
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text[:MAX_CHARACTERS], len(text) > MAX_CHARACTERS


def has_labels(table: Table, columns: Columns, known: frozenset[str | float] | None = None) -> bool:
    """Whether a split is labelled: it has the column, and more in it than one placeholder.

    Args:
        table: the split.
        columns: what the train split's columns are.
        known: the classes (or tags) of the train split; a split whose only value is none of them
            ("-1" or "?" in every row) counts as unlabelled.
    """
    cells = table.columns.get(columns.label or "")
    if cells is None:
        return False
    labels = read_labels(cells, columns.task)
    values = {value for label in labels if label is not None for value in classes_of(label)}
    placeholder = known is not None and len(values) == 1 and not values & known
    return bool(values) and not placeholder


def left_out(table: Table, indices: Sequence[int], what: str, done: str = "left out") -> list[str]:
    """A sentence on rows that cannot be used as they are, if there are any: how many and where."""
    if not indices:
        return []
    noun, *rest = what.split(" ", 1)
    counts = " ".join([counted(len(indices), noun), *rest])
    return [f"{table.source}: {counts}, {done} ({table.place(indices)})."]


_CUT = f"cut to the first {MAX_CHARACTERS:,} characters"


def _texts(cells: Sequence[Cell]) -> tuple[list[str], set[int]]:
    cleaned = [clean_text(cell) for cell in cells]
    return [text for text, _ in cleaned], {i for i, (_, cut) in enumerate(cleaned) if cut}


def _labels(table: Table, columns: Columns) -> list[Label | None]:
    assert columns.label is not None
    cells = require(table, columns.label, "label")
    labels = read_labels(cells, columns.task)
    if columns.task == "regression" and not any(label is not None for label in labels):
        shown = next((cell for cell in cells if cell), "nothing")
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


def _blank(table: Table, name: str, count: int) -> list[str]:
    return [f"{table.source}: {counted(count, f'{name} row')} left out."] if count else []
