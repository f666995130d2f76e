"""Texts to predict: no row may go missing, and labels are welcome but not needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from totune.data.columns import require
from totune.data.examples import Columns, Examples, Label
from totune.data.extraction import clean_text
from totune.data.files import decode, missing_file, read_bytes, table_suffix
from totune.data.readers import read_table
from totune.data.sst import is_trees
from totune.data.tables import Cell, Table
from totune.data.tag_inputs import refuse_ragged, sentences, sentences_of_file
from totune.data.tag_schemes import Scheme
from totune.data.targets import read_labels
from totune.data.wording import counted, listed
from totune.errors import DataError


def read_inputs(
    inputs: str | Path | Sequence[str] | Sequence[tuple[str, str]] | Sequence[Sequence[str]],
    columns: Columns,
    *,
    encoding: str | None = None,
    tag_scheme: Scheme = "iob2",
    labelled: bool = False,
) -> Examples:
    """Reads texts for a trained model, one example for each, in their order.

    Args:
        inputs: texts (for pairs: tuples of two); or a file: any table with the columns the model
            was trained on (a table of one column is read whatever its name), or a .txt file with
            one text per line (for pairs: two, with a tab between). Of sentiment trees the whole
            sentences are read. For tagging: lists of words, or sentences, which are split at white
            space alone (punctuation is not set apart); or a file: CoNLL columns with or without
            tags, a table with word lists, or a .txt file with one sentence per line (or one word,
            with blank lines between sentences).
        columns: the columns the model was trained on.
        encoding: of a text file; UTF-8 if not named.
        tag_scheme: what the model was trained on; tags of another scheme are converted to it.
        labelled: whether rows of a table that have no label are left out; not for tagging.

    Returns:
        The examples; empty texts stay. Labels are None unless every row has one.

    Raises:
        DataError: a file cannot be read, lacks a column, or has malformed rows.
    """
    if not isinstance(inputs, str | Path):
        return sentences(inputs) if columns.task == "tagging" else _from_texts(inputs, columns)
    path = Path(inputs).expanduser()
    if not path.exists():
        raise DataError(f"{missing_file(path)} Texts themselves are given as a list.")
    if columns.task == "tagging":
        return sentences_of_file(path, columns, encoding, tag_scheme)
    if table_suffix(path.name) == ".txt":
        text = decode(read_bytes(path)[0], path, encoding)
        lines = text.removesuffix("\n").split("\n")
        if is_trees(text):
            sentences_alone = read_table(path, encoding).without_parts()
            return _from_table(sentences_alone, replace(columns, text="sentence"), labelled)
        if columns.text not in lines[0].split("\t"):
            unlabelled = _from_lines(lines, path, columns)
            return unlabelled.take([]) if labelled else unlabelled
    return _from_table(read_table(path, encoding), columns, labelled)


def _from_texts(texts: Sequence[object], columns: Columns) -> Examples:
    if len(texts) == 0:
        raise DataError("There are no texts to predict: the list is empty.")
    width = 1 if columns.pair is None else 2
    wanted = "a text" if width == 1 else "a pair of texts"
    rows: list[tuple[str, ...]] = []
    for at, item in enumerate(texts):
        row = tuple(item) if isinstance(item, tuple | list) else (item,)
        if len(row) != width or not all(isinstance(text, str) for text in row):
            raise DataError(f"Item {at} of the list is {item!r}, not {wanted}.")
        rows.append(tuple(str(text) for text in row))
    seconds = None if width == 1 else [row[1] for row in rows]
    return _examples([row[0] for row in rows], seconds, range(len(rows)))


def _from_lines(lines: Sequence[str], path: Path, columns: Columns) -> Examples:
    numbers = range(1, len(lines) + 1)
    if columns.pair is None:
        return _examples(lines, None, numbers)
    split = [line.split("\t") for line in lines]
    wrong = [at for at, parts in zip(numbers, split, strict=True) if len(parts) != 2]
    if wrong:
        raise DataError(
            f"{path}: {counted(len(wrong), 'line')} not of two texts with one tab between "
            f"({listed(wrong, 'line')}). The model was trained on pairs "
            f"({columns.text!r}, {columns.pair!r})."
        )
    return _examples([parts[0] for parts in split], [parts[1] for parts in split], numbers)


def _from_table(table: Table, columns: Columns, labelled: bool) -> Examples:
    refuse_ragged(table)
    labels = _labels(table, columns)
    present = [at for at, label in enumerate(labels) if label is not None]
    if columns.pair is None and len(table.columns) == 1:
        examples = _examples(next(iter(table.columns.values())), None, table.rows)
    else:
        texts = require(table, columns.text, "text")
        pairs = None if columns.pair is None else require(table, columns.pair, "pair")
        examples = _examples(texts, pairs, table.rows)
    if not labelled and len(present) < len(table):
        return examples
    found = tuple(label for label in labels if label is not None)
    return replace(examples.take(present), labels=found)


def _labels(table: Table, columns: Columns) -> list[Label | None]:
    cells = table.columns.get(columns.label or "")
    return [] if cells is None else read_labels(cells, columns.task)


def _examples(texts: Sequence[Cell], pairs: Sequence[Cell] | None, rows: Sequence[int]) -> Examples:
    return Examples(
        texts=tuple(clean_text(text)[0] for text in texts),
        pairs=None if pairs is None else tuple(clean_text(text)[0] for text in pairs),
        rows=tuple(rows),
    )
