"""Records of a delimited file, one after the other.

They are read as `totune.data.delimited` reads a whole file, but that delimiter, quoting and header
are judged by the first thousand lines.
"""

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from totune.data.delimited import SAMPLE, delimiter_of, long_fields, split_commas, split_tabs
from totune.data.readers import table_of_records
from totune.data.tables import Table
from totune.errors import DataError
from totune.extraction.lines import read_lines
from totune.text import counted

MOST_LINES = 1000  # of a record; after them a quote that never ends is a plain one


@dataclass(frozen=True)
class Dialect:
    """How a file's records are told.

    Attributes:
        sample: its first rows.
        quoted: whether quotes are read as csv quoting.
    """

    sample: Table
    delimiter: str
    quoted: bool

    @classmethod
    def of(cls, path: Path, suffix: str, encoding: str | None, header: bool | None) -> "Dialect":
        """Judges a file by its first lines; `header` is whether it has one, None to judge."""
        text = "".join(f"{line}\n" for line in islice(read_lines(path, encoding), SAMPLE))
        by_commas = suffix == ".csv"
        records = split_commas(text) if by_commas else split_tabs(text)
        sample = table_of_records(records, path, header)
        return cls(sample, delimiter_of(text) if by_commas else "\t", records.quoted)


def read_records(path: Path, encoding: str | None, dialect: Dialect) -> Iterator[list[str]]:
    """Yields the fields of each row.

    Raises:
        DataError: a row has another number of fields than the first lines have.
    """
    lines = read_lines(path, encoding)
    records = _quoted(lines, dialect.delimiter) if dialect.quoted else _literal(lines)
    width = len(dialect.sample.columns)
    for number, (line, fields) in enumerate(records):
        if len(fields) != width:
            raise DataError(
                f"{path} line {line:,} has {counted(len(fields), 'field')}, not {width}, so its "
                "text cannot be told. Correct the line, or the delimiter and quoting of the file; "
                "shards that are finished stay."
            )
        if number or not dialect.sample.header:
            yield fields


def _literal(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, with their numbers, cut at tabs."""
    return ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)


class _Lines:
    """Lines for the csv reader; gives back those of a record that turns out to be none."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self.taken: list[str] = []
        self.number = 0  # of the last line handed out

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if len(self.taken) >= MOST_LINES:
            raise csv.Error("a quote that never ends")
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        self.number += 1
        return f"{line}\n"

    def keep_first(self) -> str:
        """The first line of what was taken; the others come again."""
        first, *others = self.taken
        self._again.extendleft(reversed(others))
        self.number -= len(others)
        return first


def _quoted(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Csv quoting, strictly, with the line on which each record starts.

    A line that breaks it is read alone, its quotes as text.
    """
    cursor = _Lines(lines)
    reader = csv.reader(cursor, delimiter=delimiter, strict=True)
    while True:
        cursor.taken = []
        start = cursor.number + 1
        try:
            with long_fields():
                record = next(reader)
        except (csv.Error, StopIteration):
            if not cursor.taken:
                return
            record = cursor.keep_first().split(delimiter)
        if record:
            yield start, record
