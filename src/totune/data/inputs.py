"""Texts to predict: no row may go missing, and labels are welcome but not needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from totune.data.columns import require
from totune.data.examples import Columns, Examples, Label
from totune.data.extraction import clean_text
from totune.data.files import decode, missing_file, read_bytes, table_suffix
from totune.data.readers import read_table
from totune.data.tables import Cell, Table
from totune.data.targets import read_labels
from totune.data.wording import counted, listed
from totune.errors import DataError


def read_inputs(
    inputs: str | Path | Sequence[str] | Sequence[tuple[str, str]],
    columns: Columns,
    *,
    encoding: str | None = None,
) -> Examples:
    """Reads texts for a trained model, one example for each, in their order.

    Args:
        inputs: texts (for pairs: tuples of two); or a file: any table with the columns the model
            was trained on (a table of one column is read whatever its name), or a .txt file with
            one text per line (for pairs: two, with a tab between).
        columns: the columns the model was trained on.
        encoding: of a text file; UTF-8 if not named.

    Returns:
        The examples; empty texts stay. Labels are None unless every row has one.

    Raises:
        DataError: a file cannot be read, lacks a column, or has malformed rows.
    """
    if not isinstance(inputs, str | Path):
        return _from_texts(inputs, columns)
    path = Path(inputs).expanduser()
    if not path.exists():
        raise DataError(f"{missing_file(path)} Texts themselves are given as a list.")
    if table_suffix(path.name) == ".txt":
        lines = _text_lines(path, encoding)
        if columns.text not in lines[0].split("\t"):
            return _from_lines(lines, path, columns)
    return _from_table(read_table(path, encoding), columns)


def _from_texts(texts: Sequence[str] | Sequence[tuple[str, str]], columns: Columns) -> Examples:
    if len(texts) == 0:
        raise DataError("There are no texts to predict: the list is empty.")
    width = 1 if columns.pair is None else 2
    wanted = "a text" if width == 1 else "a pair of texts"
    rows: list[tuple[str, ...]] = []
    for at, item in enumerate(texts):
        row = tuple(item) if isinstance(item, tuple | list) else (item,)
        if len(row) != width or not all(isinstance(text, str) for text in row):
            raise DataError(f"Item {at} of the list is {item!r}, not {wanted}.")
        rows.append(row)
    seconds = None if width == 1 else [row[1] for row in rows]
    return _examples([row[0] for row in rows], seconds, range(len(rows)))


def _text_lines(path: Path, encoding: str | None) -> list[str]:
    text = decode(read_bytes(path)[0], path, encoding)
    return text.removesuffix("\n").split("\n")


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


def _from_table(table: Table, columns: Columns) -> Examples:
    if table.ragged:
        raise DataError(
            f"{table.source}: {counted(len(table.ragged), 'row')} without the usual "
            f"{len(table.columns)} fields ({listed(table.ragged, table.unit)}). Mend or remove "
            "them: no row may go missing from a prediction."
        )
    if columns.pair is None and len(table.columns) == 1:
        return _examples(next(iter(table.columns.values())), None, table.rows)
    texts = require(table, columns.text, "text")
    pairs = None if columns.pair is None else require(table, columns.pair, "pair")
    return replace(_examples(texts, pairs, table.rows), labels=_labels(table, columns))


def _labels(table: Table, columns: Columns) -> tuple[Label, ...] | None:
    cells = table.columns.get(columns.label or "")
    labels = [] if cells is None else read_labels(cells, columns.task)
    present = tuple(label for label in labels if label is not None)
    return present if len(present) == len(table) else None


def _examples(texts: Sequence[Cell], pairs: Sequence[Cell] | None, rows: Sequence[int]) -> Examples:
    return Examples(
        texts=tuple(clean_text(text)[0] for text in texts),
        pairs=None if pairs is None else tuple(clean_text(text)[0] for text in pairs),
        rows=tuple(rows),
    )
