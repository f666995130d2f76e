"""Readers: one function from a file of any known format to a table."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from totune.data.conll import is_conll, read_conll
from totune.data.delimited import Records, looks_like_data, split_commas, split_tabs
from totune.data.files import CONLL_SUFFIXES, decode, read_bytes
from totune.data.sst import is_trees, read_trees
from totune.data.tables import Cell, Table, as_cell, table_of
from totune.errors import DataError
from totune.text import counted, listed


def read_table(
    path: Path,
    encoding: str | None = None,
    header: bool | None = None,
    headerless: bool = False,
) -> Table:
    """Reads a csv, tsv, txt (tab-separated), json lines or parquet file, packed or not.

    A txt or tsv file may also hold CoNLL columns, a txt file sentiment trees: their content tells.

    Args:
        path: the file.
        encoding: of a text file; None for UTF-8.
        header: whether the first line names the columns; None to judge by its content.
        headerless: whether a first line that could be either is a row, as it is likely where other
            files of the same data have no header.

    Raises:
        DataError: the file cannot be read, holds no rows, or most of its rows are malformed.
    """
    content, suffix = read_bytes(path)
    if suffix == ".parquet":
        table = _read_parquet(content, path)
    else:
        text = decode(content, path, encoding)
        if suffix in (".jsonl", ".ndjson", ".json"):
            table = _read_json(text, path)
        else:
            table = _read_lines(text, path, suffix, header, headerless)
    if not len(table):
        raise DataError(f"{path} holds no rows" + (", only a header." if table.columns else "."))
    return table


def _read_lines(text: str, path: Path, suffix: str, header: bool | None, headerless: bool) -> Table:
    if suffix in CONLL_SUFFIXES or (suffix in (".txt", ".tsv") and is_conll(text)):
        return read_conll(text, path)
    if suffix == ".txt" and is_trees(text):
        return read_trees(text, path)
    records = split_commas(text) if suffix == ".csv" else split_tabs(text)
    return table_of_records(records, path, header, headerless)


def _read_parquet(content: bytes, path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = pq.read_table(io.BytesIO(content))
        columns = {
            name: [as_cell(value) for value in data.column(at).to_pylist()]
            for at, name in enumerate(data.column_names)
        }
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: text that is not UTF-8
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} cannot be read as parquet: {reason}") from None
    return Table(str(path), columns, range(1, data.num_rows + 1))


def _read_json(text: str, path: Path) -> Table:
    if text.lstrip().startswith("["):
        rows = _parse(text, path, first_line=1)
        return table_of(_objects(rows, path, "item"), str(path), range(1, len(rows) + 1), "item")
    lines = [(at, line) for at, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = [_parse(line, path, at) for at, line in lines]
    numbers = [at for at, _ in lines]
    return table_of(_objects(rows, path, "line", numbers), str(path), numbers, "line")


def _parse(text: str, path: Path, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        reason = f"{error.msg} (column {error.colno:,})"
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, or deep nesting
        line, reason = first_line, str(error)
    raise DataError(
        f"{path} line {line:,} is not JSON: {reason}. "
        'Each line should be an object such as {"text": "...", "label": "..."}.'
    )


def _objects(
    rows: Sequence[Any], path: Path, unit: str, numbers: Sequence[int] | None = None
) -> Sequence[Mapping[str, Any]]:
    for at, row in enumerate(rows):
        if not isinstance(row, dict):
            where = numbers[at] if numbers else at + 1
            raise DataError(
                f"{path} {unit} {where:,} is a {type(row).__name__}, not an object "
                'such as {"text": "...", "label": "..."}.'
            )
    return rows


def table_of_records(
    records: Records, path: Path, header: bool | None, headerless: bool = False
) -> Table:
    """The records of a delimited file under their columns' names; the rest as in `read_table`."""
    if not records.fields:
        raise DataError(f"{path} holds no rows: every line is blank.")
    if header is None:
        header = not looks_like_data(records.fields, unsure=headerless)
    names, notes = _names(records, path, header)
    width = len(names)
    body = list(zip(records.fields, records.lines, strict=True))[1 if header else 0 :]
    good = [(fields, line) for fields, line in body if len(fields) == width]
    ragged = tuple(line for fields, line in body if len(fields) != width)
    columns: dict[str, list[Cell]] = {
        name: [fields[at] for fields, _ in good] for at, name in enumerate(names)
    }
    return Table(
        source=str(path),
        columns=columns,
        rows=[line for _, line in good],
        unit="line",
        header=header,
        ragged=ragged,
        notes=notes,
        warnings=(*_ragged(path, ragged, len(body), width), *_unbalanced(path, records)),
    )


def _names(records: Records, path: Path, header: bool) -> tuple[list[str], tuple[str, ...]]:
    """The columns' names, unique, and what to say of them."""
    if not header:
        names = [f"column{at}" for at in range(1, records.width + 1)]
        return names, (
            f"{path} has no header line, so its columns are called column1 to column{len(names)}.",
        )
    names = []
    for at, given in enumerate(records.fields[0], start=1):
        name = given.strip() or f"column{at}"
        names.append(f"{name}.{at}" if name in names else name)
    return names, ()


def _ragged(path: Path, ragged: Sequence[int], rows: int, width: int) -> list[str]:
    """A warning on rows that do not fit; raises `DataError` when they are the majority."""
    if not ragged:
        return []
    message = (
        f"{path}: of {counted(rows, 'row')}, {len(ragged):,} did not have {width} fields "
        f"({listed(ragged, 'line')})"
    )
    if 2 * len(ragged) > rows:
        raise DataError(f"{message}. Check the delimiter, the quoting and the header line.")
    return [f"{message}; left out."]


def _unbalanced(path: Path, records: Records) -> list[str]:
    lines = records.unbalanced
    if not lines:
        return []
    return [
        f"{path}: quotes do not match up in {counted(len(lines), 'row')} "
        f"({listed(lines, 'line')}); there they were read as text."
    ]
