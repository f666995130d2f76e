"""Rows of every format, one after the other, whatever the size of the source.

A stream is opened twice: for a sample, by which columns are told, and to be read.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from totune.data.delimited import SAMPLE
from totune.data.files import PACKED_SUFFIXES, table_suffix
from totune.data.hub import stream_hub
from totune.data.tables import Cell, Table, as_cell, table_of
from totune.errors import DataError
from totune.extraction.delimited import Dialect, read_records
from totune.extraction.lines import read_lines

TEXT = "text"  # what the only column of a file of lines is called
_STREAMED = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet")
_BATCH = 1000  # rows that are read at once of a parquet file
_BUFFER = 1 << 20  # bytes, likewise; without, a column of a whole row group

Row = list[Cell]  # the cells of the columns that were asked for


class Stream(Protocol):
    """A source of rows.

    Attributes:
        sample: the first rows, by which columns are told.
        total: how many rows there are, None where that is not known before they are read.
    """

    @property
    def sample(self) -> Table: ...

    @property
    def total(self) -> int | None: ...

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yields the cells of `columns`, which the sample has, of every row.

        Raises:
            DataError: a row cannot be read.
        """


@dataclass(frozen=True)
class _Delimited:
    path: Path
    encoding: str | None
    dialect: Dialect
    total: None = None

    @property
    def sample(self) -> Table:
        return self.dialect.sample

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        names = list(self.sample.columns)
        at = [names.index(name) for name in columns]
        for fields in read_records(self.path, self.encoding, self.dialect):
            yield [fields[place] for place in at]


@dataclass(frozen=True)
class _TextLines:
    path: Path
    encoding: str | None
    total: None = None

    @cached_property
    def sample(self) -> Table:
        lines: list[Cell] = list(islice(read_lines(self.path, self.encoding), SAMPLE))
        return Table(str(self.path), {TEXT: lines}, range(1, len(lines) + 1), "line", header=False)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        return ([line] for line in read_lines(self.path, self.encoding))


@dataclass(frozen=True)
class _JsonLines:
    path: Path
    encoding: str | None
    total: None = None

    @cached_property
    def sample(self) -> Table:
        found = list(islice(self._objects(), SAMPLE))
        numbers = [number for number, _ in found]
        return table_of((row for _, row in found), str(self.path), numbers, "line")

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        for _, row in self._objects():
            yield [as_cell(row.get(name)) for name in columns]

    def _objects(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, line in enumerate(read_lines(self.path, self.encoding), 1):
            if line.strip():
                yield number, self._object(number, line)

    def _object(self, number: int, line: str) -> Mapping[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            fault = f"is not JSON: {error}"
        else:
            if isinstance(row, dict):
                return row
            fault = f"is a {type(row).__name__}, not an object"
        raise DataError(
            f"{self.path} line {number:,} {fault}. Each line should be an object such as "
            '{"text": "..."}.'
        )


@dataclass(frozen=True)
class _Parquet:
    path: Path

    @cached_property
    def sample(self) -> Table:
        names = self._open().schema_arrow.names
        rows = list(islice(self.rows(names), SAMPLE))
        columns = {name: [cells[at] for cells in rows] for at, name in enumerate(names)}
        return Table(str(self.path), columns, range(1, len(rows) + 1))

    @property
    def total(self) -> int:
        return int(self._open().metadata.num_rows)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        batches = self._open().iter_batches(_BATCH, columns=list(columns), use_threads=False)
        for batch in self._read(batches):
            cells = [batch.column(name).to_pylist() for name in columns]
            for row in zip(*cells, strict=True):
                yield [as_cell(value) for value in row]

    def _open(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path, buffer_size=_BUFFER)
        except (pa.ArrowException, OSError) as error:
            raise self._fault(error) from None

    def _read(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from batches
        except (pa.ArrowException, OSError) as error:
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> DataError:
        return DataError(f"{self.path} cannot be read as parquet: {str(error).splitlines()[0]}")


@dataclass(frozen=True)
class TableStream:
    """The rows of a table that is in memory."""

    sample: Table

    @property
    def total(self) -> int:
        return len(self.sample)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        cells = [self.sample.columns[name] for name in columns]
        return (list(row) for row in zip(*cells, strict=True))


class HubStream:
    """The train split of a dataset of the hub, which comes as it is read."""

    total = None

    def __init__(self, reference: str) -> None:
        self._name = f"hub:{reference} train"
        self._rows, self._readers = stream_hub(reference)

    @cached_property
    def sample(self) -> Table:
        rows = list(islice(self._read(), SAMPLE))
        names = self._readers or dict.fromkeys(name for row in rows for name in row)
        columns = {name: [self._cell(name, row) for row in rows] for name in names}
        return Table(self._name, columns, range(1, len(rows) + 1))

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        for row in self._read():
            yield [self._cell(name, row) for name in columns]

    def _read(self) -> Iterator[Mapping[str, Any]]:
        try:
            yield from self._rows
        except Exception as error:  # what a hub or a network can do is of many kinds
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise DataError(f"{self._name} cannot be read further: {reason}") from None

    def _cell(self, name: str, row: Mapping[str, Any]) -> Cell:
        read: Callable[[Any], Cell] = self._readers.get(name, as_cell)
        return read(row.get(name))


def open_file(path: Path, encoding: str | None, text: str, like: Table | None = None) -> Stream:
    """The stream of a file.

    Args:
        path: a .csv, .tsv, .txt, .jsonl or .parquet file; the text formats also packed, as .gz or
            .xz. The lines of a .txt file are texts, unless the first one names the column `text`.
        encoding: of a text file; UTF-8 if None.
        text: the column of texts, where a .txt file is a table.
        like: the sample of the first file of the same folder, which tells whether there are
            headers.

    Raises:
        DataError: the format is none of these, or the first rows cannot be read.
    """
    suffix = table_suffix(path.name)
    packed = path.suffix.lower() if path.suffix.lower() in PACKED_SUFFIXES else ""
    if suffix not in _STREAMED or packed == ".zip" or (packed and suffix == ".parquet"):
        raise DataError(
            f"{path} cannot be read row by row: its name should end in one of "
            f"{', '.join(_STREAMED)}; all but .parquet may have .gz or .xz after it."
        )
    if suffix == ".parquet":
        return _Parquet(path)
    if suffix in (".jsonl", ".ndjson"):
        return _JsonLines(path, encoding)
    if suffix == ".txt" and _holds_lines(path, encoding, text, like):
        return _TextLines(path, encoding)
    header = None if like is None else like.header
    return _Delimited(path, encoding, Dialect.of(path, suffix, encoding, header))


def _holds_lines(path: Path, encoding: str | None, text: str, like: Table | None) -> bool:
    """Whether a .txt file is no table: what the first of a folder is, all are."""
    if like is not None:
        return not like.header and list(like.columns) == [TEXT]
    return text not in next(read_lines(path, encoding)).split("\t")
