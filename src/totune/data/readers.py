"""Readers: rows of a file of any known format, one after the other or all at once.

A file that is read row by row is never held: its delimiter, quoting, header and columns are judged
by its first thousand lines, and what does not fit them later is an error. A file that is read whole
is judged whole, and rows that do not fit are left out and remarked. CoNLL columns and sentiment
trees are always read whole, for a sentence's fields and a phrase's repetitions follow from the
whole file.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from totune.data import delimited
from totune.data.conll import is_conll, read_conll
from totune.data.delimited import Dialect, Record, looks_like_data, usual_width
from totune.data.files import (
    CONLL_SUFFIXES,
    PACKED_SUFFIXES,
    read_lines,
    table_format,
    unpacked,
)
from totune.data.sst import is_trees, read_trees
from totune.data.tables import (
    Cell,
    NumberedCells,
    Remarks,
    RowReader,
    SourceTable,
    TableRows,
    as_cell,
    table_of,
)
from totune.errors import DataError
from totune.text import counted, first_line, listed

STREAMED = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet")
TEXT = "text"  # the only column of a file of lines
_JSON = '{"text": "...", "label": "..."}'
_BATCH = 1000  # rows of a parquet file that are read at once
_BUFFER = 1 << 20  # bytes, likewise; without, a column of a whole row group

Lines = Callable[[], Iterable[str]]


def read_table(
    path: Path,
    encoding: str | None = None,
    header: bool | None = None,
    headerless: bool = False,
) -> SourceTable:
    """All rows of a csv, tsv, txt (tab-separated), json lines or parquet file, packed or not.

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
    table = _open_whole(path, encoding, header, headerless).table()
    if not len(table):
        raise DataError(f"{path} holds no rows" + (", only a header." if table.columns else "."))
    return table


def _open_whole(
    path: Path, encoding: str | None, header: bool | None, headerless: bool
) -> RowReader:
    suffix = table_format(path)
    if suffix == ".parquet":
        return ParquetRows(path)
    if suffix == ".xlsx":
        return TableRows(_read_excel(path))
    lines = list(read_lines(path, encoding))
    if suffix in (".jsonl", ".ndjson", ".json"):
        is_array = next((line for line in lines if line.strip()), "").lstrip().startswith("[")
        whole = _read_array(lines, path) if is_array else _read_nested(lines, path, suffix)
        return JsonRows(path, lambda: lines) if whole is None else TableRows(whole)
    if suffix in CONLL_SUFFIXES or (suffix in (".txt", ".tsv") and is_conll(lines)):
        return TableRows(read_conll(lines, path))
    if suffix == ".txt" and is_trees(lines):
        return TableRows(read_trees(lines, path))
    return DelimitedRows(path, lambda: lines, lines, suffix == ".csv", header, headerless)


def open_rows(
    path: Path,
    encoding: str | None = None,
    text: str = TEXT,
    like: SourceTable | None = None,
) -> RowReader:
    """The rows of a file, which is not held if it is of a format in `STREAMED`.

    Args:
        path: a file of any known format. The lines of a .txt file are texts, unless the first one
            names the column `text`; a .tsv file is a table.
        encoding: of a text file; UTF-8 if None.
        text: the column of texts, where a .txt file is a table.
        like: the sample of the first file of the same folder, which tells whether there are
            headers.

    Raises:
        DataError: the first rows cannot be read.
    """
    suffix = table_format(path)
    if suffix == ".parquet":
        return ParquetRows(path)
    if suffix not in STREAMED:
        return _open_whole(path, encoding, None, False)

    def lines() -> Iterator[str]:
        return read_lines(path, encoding)

    if suffix in (".jsonl", ".ndjson"):
        return JsonRows(path, lines)
    if suffix == ".txt" and _holds_lines(lines, text, like):
        return LineRows(path, lines)
    head = list(islice(lines(), delimited.SAMPLE))
    return DelimitedRows(path, lines, head, suffix == ".csv", None if like is None else like.header)


def _holds_lines(lines: Lines, text: str, like: SourceTable | None) -> bool:
    """Whether a .txt file is no table: what the first of a folder is, all are."""
    if like is not None:
        return not like.header and list(like.columns) == [TEXT]
    return text not in next(iter(lines())).split("\t")


class LineRows(RowReader):
    """The lines of a text file, each a text."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.source, self._lines = str(path), lines

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        return ((number, [line]) for number, line in enumerate(self._lines(), 1))

    def table(self, most: int | None = None) -> SourceTable:
        lines: list[Cell] = list(islice(self._lines(), most))
        return SourceTable(
            self.source, {TEXT: lines}, range(1, len(lines) + 1), "line", header=False
        )


class DelimitedRows(RowReader):
    """The records of a delimited file.

    Args:
        path: named in messages.
        lines: gives the file's lines anew.
        judged: those that delimiter, quoting and header follow from.
        commas: whether it is a .csv file, not a tab-separated one.
        header: whether the first line names the columns; None to judge by its content.
        headerless: the judgement where the content does not tell.

    Raises:
        DataError: every line is blank.
    """

    def __init__(
        self,
        path: Path,
        lines: Lines,
        judged: Sequence[str],
        commas: bool,
        header: bool | None = None,
        headerless: bool = False,
    ) -> None:
        self.source, self._lines = str(path), lines
        self._dialect = Dialect.of(judged, commas)
        records = (record.fields for record in self._dialect.records(judged))
        first = list(islice(records, delimited.SAMPLE))
        if not first:
            raise DataError(f"{path} holds no rows: every line is blank.")
        self._header = not looks_like_data(first, headerless) if header is None else header
        self._names = _column_names(first if self._header else [*first, *records], self._header)

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        at = [self._names.index(name) for name in columns]
        width = len(self._names)
        for line, fields, _ in islice(self._records(), int(self._header), None):
            if len(fields) != width:
                raise DataError(
                    f"{self.source} line {line:,} has {counted(len(fields), 'field')}, not {width},"
                    " so its text cannot be told. Correct the line, or the delimiter and quoting "
                    "of the file; what was finished before it stays."
                )
            yield line, [fields[place] for place in at]

    def table(self, most: int | None = None) -> SourceTable:
        records = list(islice(self._records(), None if most is None else most + self._header))
        body = records[int(self._header) :]
        width = len(self._names)
        good = [record for record in body if len(record.fields) == width]
        ragged = [record.line for record in body if len(record.fields) != width]
        columns: dict[str, list[Cell]] = {
            name: [record.fields[at] for record in good] for at, name in enumerate(self._names)
        }
        return SourceTable(
            source=self.source,
            columns=columns,
            rows=[record.line for record in good],
            unit="line",
            header=self._header,
            ragged=tuple(ragged),
            remarks=self._remarks(records, ragged),
        )

    def _records(self) -> Iterator[Record]:
        """All records, the header first if there is one."""
        return self._dialect.records(self._lines())

    def _remarks(self, records: Sequence[Record], ragged: Sequence[int]) -> Remarks:
        """What was left out; raises `DataError` where that is the majority."""
        remarks = Remarks()
        width, count = len(self._names), len(records) - self._header
        if not self._header:
            remarks.notes.append(
                f"{self.source} has no header line, so its columns are called column1 to "
                f"column{width}."
            )
        if ragged:
            message = (
                f"{self.source}: of {counted(count, 'row')}, {len(ragged):,} did not have "
                f"{width} fields ({listed(ragged, 'line')})"
            )
            if 2 * len(ragged) > count:
                raise DataError(f"{message}. Check the delimiter, the quoting and the header line.")
            remarks.warnings.append(f"{message}; left out.")
        unbalanced = [record.line for record in records if record.unbalanced]
        if unbalanced:
            remarks.warnings.append(
                f"{self.source}: quotes do not match up in {counted(len(unbalanced), 'row')} "
                f"({listed(unbalanced, 'line')}); there they were read as text."
            )
        return remarks


def _column_names(records: Sequence[Sequence[str]], header: bool) -> list[str]:
    """The columns' names, unique."""
    if not header:
        return [f"column{at}" for at in range(1, usual_width(records) + 1)]
    names: list[str] = []
    for at, given in enumerate(records[0], start=1):
        name = given.strip() or f"column{at}"
        names.append(f"{name}.{at}" if name in names else name)
    return names


class JsonRows(RowReader):
    """The objects of a json lines file, one per line."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.source, self._lines = str(path), lines

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        for number, row in self._objects():
            yield number, [as_cell(row.get(name)) for name in columns]

    def table(self, most: int | None = None) -> SourceTable:
        numbered = list(islice(self._objects(), most))
        numbers = [number for number, _ in numbered]
        return table_of((row for _, row in numbered), self.source, numbers, "line")

    def _objects(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, line in enumerate(self._lines(), 1):
            if line.strip():
                row = _parse(line, self.source, number)
                yield number, _as_object(row, f"{self.source} line {number:,}")


def _read_array(lines: Sequence[str], path: Path) -> SourceTable:
    """The objects of a json file that is one array."""
    items = _parse("\n".join(lines), str(path), 1)
    rows = [_as_object(item, f"{path} item {at:,}") for at, item in enumerate(items, 1)]
    return table_of(rows, str(path), range(1, len(rows) + 1), "item")


def _read_nested(lines: Sequence[str], path: Path, suffix: str) -> SourceTable | None:
    """The rows of a json file that is one object with a list of them inside; else None.

    Raises:
        DataError: it holds more than one list of objects.
    """
    try:
        value = json.loads("\n".join(lines)) if suffix == ".json" else None
    except (ValueError, RecursionError):
        return None  # an object per line, or damaged, which is then said with its line
    if not isinstance(value, dict):
        return None
    lists = {
        name: items
        for name, items in value.items()
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in items)
    }
    if len(lists) > 1:
        raise DataError(
            f"{path} holds several lists of rows ({', '.join(lists)}): write each to a file of its "
            "own, named train.json, dev.json and test.json."
        )
    if not lists:
        return None
    [(name, rows)] = lists.items()
    table = table_of(rows, str(path), range(1, len(rows) + 1), "item")
    table.remarks.notes.append(f"{path}: rows are read from the list {name!r}.")
    return table


def _read_excel(path: Path) -> SourceTable:
    """The first sheet of an Excel file, whose first row names the columns."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{path}: reading Excel needs openpyxl: pip install 'totune[excel]'; or save the sheet "
            "as csv."
        ) from None
    with unpacked(path) as content:
        source = io.BytesIO(content.read())
    try:
        sheets = openpyxl.load_workbook(source, read_only=True, data_only=True).worksheets
        lines = [[as_cell(value) for value in line] for line in sheets[0].values]
    except Exception as error:  # of zip, of XML, of openpyxl itself
        raise DataError(f"{path} cannot be read as Excel: {first_line(error)}") from None
    numbered = [(at, line) for at, line in enumerate(lines, 1) if any(line)]
    if not numbered:
        raise DataError(f"{path} holds no rows: its first sheet is empty.")
    (_, head), *body = numbered
    names = _column_names([[cell or "" for cell in head]], header=True)
    columns: dict[str, list[Cell]] = {
        name: [line[at] for _, line in body] for at, name in enumerate(names)
    }
    table = SourceTable(str(path), columns, [number for number, _ in body])
    if len(sheets) > 1:
        table.remarks.notes.append(
            f"{path}: only the first of {len(sheets)} sheets is read, {sheets[0].title!r}."
        )
    return table


def _parse(text: str, source: str, first: int) -> Any:
    """The value of a JSON text that begins on line `first`."""
    try:
        found = json.loads(text)
        # Half of a surrogate pair, which only an escape can write, is no character.
        return _whole(found) if r"\ud" in text or r"\uD" in text else found
    except json.JSONDecodeError as error:
        line = first + error.lineno - 1
        reason = f"{error.msg} (column {error.colno:,})"
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, or deep nesting
        line, reason = first, str(error)
    raise DataError(
        f"{source} line {line:,} is not JSON: {reason}. Each line should be an object such as "
        f"{_JSON}."
    )


def _whole(value: Any) -> Any:
    """The same with � in place of halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(item) for name, item in value.items()}
    return value


def _as_object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{place} is a {type(value).__name__}, not an object such as {_JSON}.")
    return value


class ParquetRows(RowReader):
    """The rows of a parquet file; of a packed one, whose content is held."""

    def __init__(self, path: Path) -> None:
        self.source, self._path = str(path), path

    @property
    def total(self) -> int:
        return int(self._open().metadata.num_rows)

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        return enumerate(self._cells(self._open(), columns), 1)

    def table(self, most: int | None = None) -> SourceTable:
        file = self._open()
        names = file.schema_arrow.names
        found = list(islice(self._cells(file, names), most))
        columns = {name: [cells[at] for cells in found] for at, name in enumerate(names)}
        return SourceTable(self.source, columns, range(1, len(found) + 1))

    def _open(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        source: Any = self._path
        if self._path.suffix.lower() in PACKED_SUFFIXES:
            with unpacked(self._path) as content:
                source = io.BytesIO(content.read())
        try:
            return pq.ParquetFile(source, buffer_size=_BUFFER)
        except (pa.ArrowException, OSError) as error:
            raise self._fault(error) from None

    def _cells(self, file: Any, columns: Sequence[str]) -> Iterator[list[Cell]]:
        import pyarrow as pa

        try:
            for batch in file.iter_batches(_BATCH, columns=list(columns), use_threads=False):
                cells = [batch.column(name).to_pylist() for name in columns]
                for row in zip(*cells, strict=True):
                    yield [as_cell(value) for value in row]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # of text, of names
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> DataError:
        return DataError(f"{self.source} cannot be read as parquet: {first_line(error)}")
