"""Texts to predict: no row may go missing, and labels are welcome but not needed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from totune.data.columns import as_named, require
from totune.data.examples import Columns, Examples
from totune.data.extraction import clean_text, labels_of
from totune.data.files import missing_file, read_lines, table_suffix
from totune.data.memory import MemoryTable, is_table, memory_table
from totune.data.readers import read_table
from totune.data.sst import is_trees
from totune.data.tables import Cell, SourceTable
from totune.data.tagging.columns import NamedColumns
from totune.data.tagging.schemes import Scheme
from totune.data.tagging.sentences import (
    refuse_ragged,
    sentences,
    sentences_of_table,
    table_of_sentences,
)
from totune.errors import DataError
from totune.text import counted, listed

Text = str | Sequence[str]  # a list of words, or a pair
_SHOWN = 5  # columns that a message names
_LONGEST = 80  # characters of a value that a message shows


def read_inputs(
    inputs: str | Path | MemoryTable,
    columns: Columns,
    *,
    named: NamedColumns | None = None,
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
            with blank lines between sentences); or a table in memory (a data frame, an Arrow table,
            a `datasets.Dataset`, a list of records, a dict of columns).
        columns: the columns the model was trained on.
        named: columns that are others in this file, by "text", "pair" and "label": their names, or
            their numbers counted from 1.
        encoding: of a text file; UTF-8 if not named.
        tag_scheme: what the model was trained on; tags of another scheme are converted to it.
        labelled: whether rows of a table that have no label are left out (not for tagging), and
            (texts, labels) are read.

    Returns:
        The examples; empty texts stay. Labels are None unless every row has one.

    Raises:
        DataError: a file cannot be read, lacks a column, or has malformed rows.
    """
    if is_table(inputs) or isinstance(inputs, str | Path) or (labelled and type(inputs) is tuple):
        table = input_table(inputs, columns, named=named, encoding=encoding)
        return read_rows(table, columns, named=named, tag_scheme=tag_scheme, labelled=labelled)
    rows: Any = inputs
    return sentences(rows) if columns.task == "tagging" else _from_texts(rows, columns)


def input_table(
    inputs: str | Path | MemoryTable,
    columns: Columns,
    *,
    named: NamedColumns | None = None,
    encoding: str | None = None,
) -> SourceTable:
    """The rows that `read_inputs` reads of a file or of a table in memory, with all their columns.

    Args:
        inputs: the file or the table; or (texts, labels), whose columns get the names of training.
        columns: the columns the model was trained on.
        named: as of `read_inputs`.
        encoding: of a text file.

    Raises:
        DataError: a file cannot be read, or has malformed rows.
    """
    if isinstance(inputs, tuple):
        given = memory_table(inputs)
        names = [columns.text, *filter(None, [columns.pair]), columns.label or "label"]
        return given.renamed(names[: len(given.columns) - 1] + names[-1:])
    if not isinstance(inputs, str | Path):
        return memory_table(inputs)
    path = Path(inputs).expanduser()
    if not path.exists():
        raise DataError(f"{missing_file(path)} Texts themselves are given as a list.")
    if columns.task == "tagging":
        table = table_of_sentences(path, columns, encoding)
    elif table_suffix(path.name) == ".txt":
        table = _table_of_text(path, columns, named or {}, encoding)
    else:
        table = _table_as_in_training(path, columns, encoding)
    refuse_ragged(table)
    return table


def _table_of_text(
    path: Path, columns: Columns, named: NamedColumns, encoding: str | None
) -> SourceTable:
    """The table of a .txt file: sentiment trees, a text per line, or columns as in training."""
    lines = list(read_lines(path, encoding))
    if is_trees(lines):
        trees = read_table(path, encoding).without_parts()
        return trees.renamed([columns.text, *list(trees.columns)[1:]])
    if any(named.values()) or _is_table(lines, columns):
        return _table_as_in_training(path, columns, encoding)
    return lines_table(lines, str(path), columns)


def _table_as_in_training(path: Path, columns: Columns, encoding: str | None) -> SourceTable:
    return read_table(path, encoding, headerless=_number(columns.text) is not None)


def read_rows(
    table: SourceTable,
    columns: Columns,
    *,
    named: NamedColumns | None = None,
    tag_scheme: Scheme = "iob2",
    labelled: bool = False,
) -> Examples:
    """The examples of a table for a trained model; takes and raises the same as `read_inputs`."""
    given = {option: column for option, column in (named or {}).items() if column is not None}
    if columns.task == "tagging":
        return sentences_of_table(table, columns, given, tag_scheme)
    return _from_table(table, columns, given, labelled)


def read_texts(
    texts: str | Iterable[Text], pairs: str | Iterable[str] | None, columns: Columns
) -> Examples:
    """Texts that a program has in memory, one example for each, in their order.

    Args:
        texts: one, or any number of them: a list, an array, a column of a data frame; or a whole
            frame, or another table in memory, that has the columns of training.
        pairs: the second texts, likewise; if None and `columns` has pairs, `texts` are tuples.
        columns: of a table; whether there are pairs, and whether words are tagged.

    Raises:
        DataError: these are no texts, or a text is missing.
    """
    if isinstance(texts, str):
        rows: list[Any] = [texts] if pairs is None else [(texts, pairs)]
        return read_inputs(rows, columns)
    if pairs is None and is_table(texts):
        table: Any = texts
        return read_inputs(table, columns)
    rows = _items(texts, "texts")
    if pairs is not None:
        seconds = _items(pairs, "pairs")
        if len(seconds) != len(rows):
            raise DataError(
                f"There are {counted(len(rows), 'text')} and {counted(len(seconds), 'second text')}"
                "; each text needs its own."
            )
        rows = list(zip(rows, seconds, strict=True))
    if not rows:
        return Examples((), pairs=None if columns.pair is None else ())
    return read_inputs(rows, columns)


def _items(values: Any, name: str) -> list[Any]:
    """The items of a list, an array or a column; raises `DataError` for anything else."""
    kind = type(values).__name__
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is not None:  # of a data frame, whose items are the names of its columns
        shown = ", ".join(map(repr, list(columns)[:_SHOWN]))
        raise DataError(
            f"{name} is a {kind}, not a list of texts: give one of its columns ({shown}), such as "
            "frame['text']."
        )
    try:
        if isinstance(values, str | bytes | Mapping | Set):
            raise TypeError
        return list(values)
    except TypeError:
        raise DataError(
            f"{name} is {_short(values)} ({kind}), not a list of texts: give a list of strings."
        ) from None


def _short(value: object) -> str:
    """A value for messages, cut."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _is_table(lines: Sequence[str], columns: Columns) -> bool:
    """Whether a .txt file has the columns of training rather than a text, or a pair, per line.

    It has if they stand in its first line; or, where training had no header either, if most lines
    have more fields than a text or a pair, and as many as the texts of training need.
    """
    if columns.text in lines[0].split("\t"):
        return True
    texts = [columns.text] if columns.pair is None else [columns.text, columns.pair]
    numbers = [_number(name) for name in texts]
    needed = max((number for number in numbers if number is not None), default=None)
    fields = Counter(line.count("\t") + 1 for line in lines if line)
    width = fields.most_common(1)[0][0] if fields else 0
    return needed is not None and width >= needed and width > len(texts)


def _number(column: str) -> int | None:
    """Which column this is of a file without header; None if a header named it."""
    found = re.fullmatch(r"column(\d+)", column)
    return None if found is None else int(found[1])


def _from_texts(texts: Sequence[object], columns: Columns) -> Examples:
    if len(texts) == 0:
        raise DataError("There are no texts to predict: the list is empty.")
    width = 1 if columns.pair is None else 2
    wanted = "a text (a string)" if width == 1 else "a pair of texts (a tuple of two strings)"
    rows: list[tuple[str, ...]] = []
    for at, item in enumerate(texts):
        row = tuple(item) if isinstance(item, tuple | list) else (item,)
        if len(row) != width or not all(isinstance(text, str) for text in row):
            raise DataError(f"Item {at} of the list is {_short(item)}, not {wanted}.")
        rows.append(tuple(str(text) for text in row))
    seconds = None if width == 1 else [row[1] for row in rows]
    return _examples([row[0] for row in rows], seconds, range(len(rows)))


def lines_table(lines: Sequence[str], source: str, columns: Columns) -> SourceTable:
    """Lines under the columns of training: each a text, or two with a tab between.

    Raises:
        DataError: a line is not of two texts, where training had pairs.
    """
    numbers = range(1, len(lines) + 1)
    if columns.pair is None:
        return SourceTable(source, {columns.text: list(lines)}, numbers, "line")
    split = [line.split("\t") for line in lines]
    wrong = [at for at, parts in zip(numbers, split, strict=True) if len(parts) != 2]
    if wrong:
        raise DataError(
            f"{source}: {counted(len(wrong), 'line')} not of two texts with one tab between "
            f"({listed(wrong, 'line')}). The model was trained on pairs "
            f"({columns.text!r}, {columns.pair!r})."
        )
    cells: dict[str, list[Cell]] = {
        columns.text: [parts[0] for parts in split],
        columns.pair: [parts[1] for parts in split],
    }
    return SourceTable(source, cells, numbers, "line")


def _from_table(
    table: SourceTable, columns: Columns, named: NamedColumns, labelled: bool
) -> Examples:
    columns = as_named(table, columns, named)
    labels = labels_of(table, columns)
    present = [at for at, label in enumerate(labels) if label is not None]
    if columns.pair is None and len(table.columns) == 1 and "text" not in named:
        examples = _examples(next(iter(table.columns.values())), None, table.rows)
    else:
        texts = require(table, columns.text, "text")
        pairs = None if columns.pair is None else require(table, columns.pair, "pair")
        examples = _examples(texts, pairs, table.rows)
    if not labelled and len(present) < len(table):
        return examples
    found = tuple(label for label in labels if label is not None)
    return replace(examples.take(present), labels=found)


def _examples(texts: Sequence[Cell], pairs: Sequence[Cell] | None, rows: Sequence[int]) -> Examples:
    return Examples(
        texts=tuple(clean_text(text)[0] for text in texts),
        pairs=None if pairs is None else tuple(clean_text(text)[0] for text in pairs),
        rows=tuple(rows),
    )
