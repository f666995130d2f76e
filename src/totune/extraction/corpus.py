"""What is read: the texts of one or more sources, in order, however many there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from totune.data.columns import find_texts, require
from totune.data.extraction import clean_text
from totune.data.files import PACKED_SUFFIXES, missing_file, table_format, table_suffix
from totune.data.hub import read_example, stream_hub
from totune.data.memory import MemoryTable, is_table, memory_table
from totune.data.readers import STREAMED, TEXT, open_rows
from totune.data.tables import Cell, RowReader, SourceTable, TableRows
from totune.errors import DataError
from totune.text import counted

_MOST_SHOWN = 3  # files of a folder that a message names


class TextRow(NamedTuple):
    """One row: its texts, cleaned as everywhere, and the cells that are kept."""

    text: str
    pair: str | None
    kept: tuple[Cell, ...]


@dataclass(frozen=True)
class TextColumns:
    """The columns that are read.

    Attributes:
        text, pair: columns of the texts.
        keep: columns that are carried along.
    """

    text: str
    pair: str | None = None
    keep: tuple[str, ...] = ()

    @property
    def options(self) -> Mapping[str, str]:
        """Every column once, and the option that names it."""
        pair = {} if self.pair is None else {self.pair: "pair"}
        return {**dict.fromkeys(self.keep, "keep"), self.text: "text", **pair}


@dataclass(frozen=True)
class TextRows:
    """Rows of texts, read again on every iteration.

    Attributes:
        first: the first source, or the only one.
        others: the further files of a folder.
    """

    first: RowReader
    others: tuple[Path, ...]
    columns: TextColumns
    encoding: str | None

    def __iter__(self) -> Iterator[TextRow]:
        return chain.from_iterable(map(self._texts, self._readers()))

    @property
    def total(self) -> int | None:
        """How many rows there are, where that is known before they are read."""
        count = 0
        for reader in self._readers():
            if reader.total is None:
                return None
            count += reader.total
        return count

    @property
    def notes(self) -> list[str]:
        """Notes on the choices that were made, for the user."""
        text, pair = self.columns.text, self.columns.pair
        texts = f"Text is read from {text!r}"
        if pair is not None:
            texts = f"Text pairs are read from {text!r} and {pair!r}"
        if not self.others:
            return [f"{texts}."]
        shown = ", ".join(path.name for path in self.others[:_MOST_SHOWN])
        more = ", ..." if len(self.others) > _MOST_SHOWN else ""
        first = Path(self.first.sample.source).name
        files = counted(1 + len(self.others), "file")
        return [f"{texts}, of {files} in the order of their names: {first}, {shown}{more}."]

    def _readers(self) -> Iterator[RowReader]:
        yield self.first
        like = self.first.sample if self.others else None
        for path in self.others:
            yield _open(path, self.encoding, self.columns.text, like)

    def _texts(self, reader: RowReader) -> Iterator[TextRow]:
        pair = [] if self.columns.pair is None else [self.columns.pair]
        _check(reader.sample, self.columns)
        for _, cells in reader.rows([self.columns.text, *pair, *self.columns.keep]):
            text, *rest = cells
            second = clean_text(rest.pop(0))[0] if pair else None
            yield TextRow(clean_text(text)[0], second, tuple(rest))


def open_texts(
    data: str | Path | MemoryTable,
    text: str | None = None,
    pair: str | None = None,
    keep: Sequence[str] = (),
    encoding: str | None = None,
) -> TextRows:
    """Finds the sources and, by the first rows, the columns.

    Args:
        data: a file, a folder of such files (read in the order of their names), `hub:NAME[/CONFIG]`
            or `example:NAME`, of which the train split is read; or a table in memory (a data frame,
            an Arrow table, a `datasets.Dataset`, a list of records), or a list of texts.
        text: the column of the (first) text; detected if not named.
        pair: the column of the second text; detected only if `text` is not named either.
        keep: other columns.
        encoding: of text files; UTF-8 if not named.

    Raises:
        DataError: nothing is there, it cannot be read row by row, or a column is missing.
    """
    first, others = _sources(data, text or TEXT, encoding)
    sample = first.sample
    if not len(sample):
        raise DataError(f"{sample.source} holds no rows.")
    columns = TextColumns(*find_texts(sample, text, pair), tuple(keep))
    if columns.text not in sample.columns:
        raise DataError(
            f"`text` {columns.text!r}: rows are read one after the other, from one column of text. "
            "Join the columns in the file first."
        )
    _check(sample, columns)
    return TextRows(first, others, columns, encoding)


def _sources(
    data: str | Path | MemoryTable, text: str, encoding: str | None
) -> tuple[RowReader, tuple[Path, ...]]:
    if not isinstance(data, str | Path):
        return TableRows(memory_table(data if is_table(data) else {text: data})), ()
    name = str(data)
    if name.startswith("hub:"):
        return stream_hub(name.removeprefix("hub:")), ()
    if name.startswith("example:"):
        return TableRows(read_example(name.removeprefix("example:"))), ()
    first, *others = _files(Path(data).expanduser())
    return _open(first, encoding, text), tuple(others)


def _open(
    path: Path, encoding: str | None, text: str, like: SourceTable | None = None
) -> RowReader:
    """The rows of a file as `open_rows` gives them; of a format that is never held."""
    suffix = table_suffix(path.name)
    if suffix == ".zip":
        suffix = table_format(path)
    packed = path.suffix.lower() in PACKED_SUFFIXES
    if suffix not in STREAMED or (packed and suffix == ".parquet"):
        raise DataError(
            f"{path} cannot be read row by row: its name should end in one of "
            f"{', '.join(STREAMED)}; all but .parquet may have {', '.join(PACKED_SUFFIXES)} after "
            "it."
        )
    return open_rows(path, encoding, text, like)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise missing_file(path)
    if not path.is_dir():
        return [path]
    found = sorted(
        file for file in path.iterdir() if table_suffix(file.name) and file.name[0] not in "._"
    )
    if not found:
        raise DataError(f"The folder {path} holds no table and no text file.")
    return found


def _check(sample: SourceTable, columns: TextColumns) -> None:
    for name, option in columns.options.items():
        require(sample, name, option)
