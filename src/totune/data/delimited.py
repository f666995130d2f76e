"""Delimited text: which delimiter, whether quotes quote, whether the first line is a header."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

SAMPLE = 1000  # records that delimiter and header are judged by
LONG_NAME = 8  # words from which on a first cell is a text, not a column's name
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
KNOWN_NAMES = frozenset(
    "answer bias body category class comment content context document emotion gold_label headline "
    "hypothesis id idx index intent label labels message passage phrase premise quality query "
    "question rating review score sentence sentence1 sentence2 sentence_a sentence_b sentiment "
    "stars summary target text text1 text2 text_a text_b title topic tweet utterance".split()
)
_FIELD_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Records:
    """The records of a delimited file.

    Attributes:
        fields: the fields of each record.
        lines: the line of the file on which each record starts, from 1.
        quoted: whether quotes were read as csv quoting.
        unbalanced: lines whose quotes do not match up; their quotes were read as text.
    """

    fields: list[list[str]]
    lines: list[int]
    quoted: bool
    unbalanced: list[int]

    @property
    def width(self) -> int:
        """The most common number of fields."""
        return Counter(map(len, self.fields)).most_common(1)[0][0] if self.fields else 0

    @property
    def ragged(self) -> int:
        """How many records have another number of fields than most."""
        width = self.width
        return sum(len(fields) != width for fields in self.fields)


def split_commas(text: str) -> Records:
    """Records of a .csv file: quoted, delimited by comma, semicolon, tab or bar."""
    return _quoted(text, delimiter_of("".join(_lines(text)[:SAMPLE])))


def delimiter_of(sample: str) -> str:
    """What delimits the fields of a .csv file: comma, semicolon, tab or bar."""
    best, best_share = ",", 0.0
    for delimiter in (",", ";", "\t", "|"):
        tried = _quoted(sample, delimiter)
        share = 1 - tried.ragged / max(1, len(tried.fields))
        if tried.width > 1 and share > best_share + 0.05:
            best, best_share = delimiter, share
    return best


def split_tabs(text: str) -> Records:
    """Records of a tab-separated file, whose quotes are mostly plain text (as in GLUE).

    Quotes count as csv quoting if that gives fewer malformed records, or if fields hold doubled
    quotes, or if a whole column is quoted.
    """
    literal = _literal(text, "\t")
    if not re.search(r'(?:^|\t)"', text, re.MULTILINE):
        return literal
    if literal.ragged:
        quoted = _quoted(text, "\t")
        fewer = quoted.ragged + len(quoted.unbalanced) < literal.ragged
        return quoted if fewer else literal
    return _quoted(text, "\t") if _quotes_are_marks(literal) else literal


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


def _lines(text: str) -> list[str]:
    """Lines with their ends, broken at line feeds alone (splitlines breaks at rarer marks too)."""
    return io.StringIO(text, newline="\n").readlines()


def _literal(text: str, delimiter: str) -> Records:
    fields, numbers = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            fields.append(line.split(delimiter))
            numbers.append(number)
    return Records(fields, numbers, quoted=False, unbalanced=[])


class _Cursor:
    """Hands lines to the csv reader; can be set back to where a bad record began."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def __iter__(self) -> "_Cursor":
        return self

    def __next__(self) -> str:
        if self.at >= len(self.lines):
            raise StopIteration
        self.at += 1
        return self.lines[self.at - 1]


def _quoted(text: str, delimiter: str) -> Records:
    """Reads csv quoting strictly; a line that breaks it is read alone, its quotes as text.

    So one unbalanced quote costs at most its own row, not the file up to the next quote.
    """
    cursor = _Cursor(_lines(text))
    fields: list[list[str]] = []
    numbers: list[int] = []
    unbalanced: list[int] = []
    with long_fields():
        reader = csv.reader(cursor, delimiter=delimiter, strict=True)
        while cursor.at < len(cursor.lines):
            start = cursor.at
            try:
                record = next(reader)
            except (csv.Error, StopIteration):
                cursor.at = start + 1
                record = cursor.lines[start].rstrip("\n").split(delimiter)
                unbalanced.append(start + 1)
            if record:
                fields.append(record)
                numbers.append(start + 1)
    return Records(fields, numbers, quoted=True, unbalanced=unbalanced)


@contextmanager
def long_fields() -> Iterator[None]:
    """Lifts csv's limit of 131,072 characters per field, which is global, while the block runs."""
    before = csv.field_size_limit(_FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _quotes_are_marks(literal: Records) -> bool:
    """Whether fields that begin with a quote are csv-quoted, in records that stand on one line."""
    opened: list[tuple[int, str]] = [
        (at, field)
        for fields in literal.fields
        for at, field in enumerate(fields)
        if field.startswith('"')
    ]
    closed = [pair for pair in opened if re.fullmatch(r'"(?:[^"]|"")*"', pair[1])]
    if len(closed) < 0.95 * len(opened):
        return False
    per_column = Counter(at for at, _ in closed)
    whole_column = max(per_column.values()) >= max(2, len(literal.fields) - 1)
    return whole_column or any('""' in field[1:-1] for _, field in closed)
