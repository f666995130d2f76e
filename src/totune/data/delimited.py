"""Delimited text: which delimiter, whether quotes quote, whether the first line is a header."""

import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SAMPLE = 1000  # lines that the delimiter, and records that the header are judged by
MOST_LINES = 10_000  # of a record; after them a quote that never ends is a plain one
LONG_NAME = 8  # words from which on a first cell is a text, not a column's name
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
KNOWN_NAMES = frozenset(
    "answer bias body category class comment content context document emotion gold_label headline "
    "hypothesis id idx index intent label labels message passage phrase premise quality query "
    "question rating review score sentence sentence1 sentence2 sentence_a sentence_b sentiment "
    "stars summary target text text1 text2 text_a text_b title topic tweet utterance".split()
)
_FIELD_LIMIT = 2**31 - 1  # characters of a field; csv's own limit is 131,072


class Record(NamedTuple):
    """One record of a delimited file.

    Attributes:
        line: the line of the file on which it starts, from 1.
        unbalanced: whether its quotes do not match up, so that they were read as text.
    """

    line: int
    fields: list[str]
    unbalanced: bool = False


@dataclass(frozen=True)
class Dialect:
    """How a file's lines are cut into fields.

    Attributes:
        quoted: whether quotes are read as csv quoting.
    """

    delimiter: str
    quoted: bool

    @classmethod
    def of(cls, lines: Sequence[str], commas: bool) -> "Dialect":
        """Judges lines of a .csv file, or of a tab-separated one.

        In a csv file quotes quote, and the delimiter is comma, semicolon, tab or bar. In a
        tab-separated file quotes are mostly plain text (as in GLUE); they count as csv quoting if
        that gives fewer malformed records, or if fields hold doubled quotes, or if a whole column
        is quoted.
        """
        if commas:
            return cls(_delimiter(lines[:SAMPLE]), True)
        return cls("\t", _tabs_are_quoted(lines))

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Yields the records of lines, as they are asked for; blank lines are none."""
        return _quoted(lines, self.delimiter) if self.quoted else _literal(lines, self.delimiter)


def looks_like_data(records: Sequence[Sequence[str]], unsure: bool = False) -> bool:
    """Whether the first record is a row rather than the columns' names.

    It is a row if a field is a number, if a field comes again and again in its column (a label),
    or if a field is a long text; a field with a name usual for columns makes it a header. Where
    none of these holds, the answer is `unsure`.
    """
    first, rest = records[0], records[1:SAMPLE]
    if any(NUMBER.fullmatch(cell.strip()) for cell in first):
        return True
    for at, cell in enumerate(first):
        if cell.strip() and sum(len(row) > at and row[at] == cell for row in rest) >= 2:
            return True
    if any(cell.strip().lower() in KNOWN_NAMES for cell in first):
        return False
    return unsure or any(len(cell.split()) >= LONG_NAME for cell in first)


def usual_width(records: Sequence[Sequence[str]]) -> int:
    """The most common number of fields; 0 of no records."""
    return Counter(map(len, records)).most_common(1)[0][0] if records else 0


def _delimiter(lines: Sequence[str]) -> str:
    best, best_share = ",", 0.0
    for delimiter in (",", ";", "\t", "|"):
        fields = [record.fields for record in _quoted(lines, delimiter)]
        share = 1 - _ragged(fields) / max(1, len(fields))
        if usual_width(fields) > 1 and share > best_share + 0.05:
            best, best_share = delimiter, share
    return best


def _tabs_are_quoted(lines: Sequence[str]) -> bool:
    if not any(line.startswith('"') or '\t"' in line for line in lines):
        return False
    literal = [record.fields for record in _literal(lines, "\t")]
    ragged = _ragged(literal)
    if not ragged:
        return _quotes_are_marks(literal)
    quoted = list(_quoted(lines, "\t"))
    unbalanced = sum(record.unbalanced for record in quoted)
    return _ragged([record.fields for record in quoted]) + unbalanced < ragged


def _ragged(records: Sequence[Sequence[str]]) -> int:
    """How many records have another number of fields than most."""
    width = usual_width(records)
    return sum(len(fields) != width for fields in records)


def _quotes_are_marks(literal: Sequence[Sequence[str]]) -> bool:
    """Whether fields that begin with a quote are csv-quoted, in records that stand on one line."""
    opened = [
        (at, field)
        for fields in literal
        for at, field in enumerate(fields)
        if field.startswith('"')
    ]
    closed = [pair for pair in opened if re.fullmatch(r'"(?:[^"]|"")*"', pair[1])]
    if len(closed) < 0.95 * len(opened):
        return False
    per_column = Counter(at for at, _ in closed)
    whole_column = max(per_column.values()) >= max(2, len(literal) - 1)
    return whole_column or any('""' in field[1:-1] for _, field in closed)


def _literal(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    return (Record(at, line.split(delimiter)) for at, line in enumerate(lines, 1) if line)


class _LineFeed:
    """Hands lines to the csv reader, and takes back those of a record that turns out to be none."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()
        self.taken: list[str] = []
        self.number = 0  # of the last line handed out

    def __iter__(self) -> "_LineFeed":
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


def _quoted(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    """Reads csv quoting strictly; a line that breaks it is read alone, its quotes as text.

    So one unbalanced quote costs at most its own row, not the file up to the next quote.
    """
    feed = _LineFeed(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.taken.clear()
        start = feed.number + 1
        unbalanced = False
        before = csv.field_size_limit(_FIELD_LIMIT)  # global, so lifted for one record at a time
        try:
            fields = next(reader)
        except (csv.Error, StopIteration):
            if not feed.taken:
                return
            fields, unbalanced = feed.keep_first().split(delimiter), True
        finally:
            csv.field_size_limit(before)
        if fields:
            yield Record(start, fields, unbalanced)
