"""What is read: the texts of one or more sources, in order, however many there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from totune.data.columns import find_texts, require
from totune.data.extraction import clean_text
from totune.data.files import missing_file, table_suffix
from totune.data.samples import read_example
from totune.data.tables import Cell, Table
from totune.errors import DataError
from totune.extraction.streams import TEXT, HubStream, Stream, TableStream, open_file
from totune.text import counted

_MOST_SHOWN = 3  # files of a folder that a message names


class Line(NamedTuple):
    """One row: its texts, cleaned as everywhere, and the cells that are kept."""

    text: str
    pair: str | None
    kept: tuple[Cell, ...]


@dataclass(frozen=True)
class Wanted:
    """The columns that are read.

    Attributes:
        text, pair: of the texts.
        keep: of what is carried along.
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
class Corpus:
    """Rows of texts that are read anew each time they are gone through.

    Attributes:
        first: the first source, or the only one.
        others: the further files of a folder.
    """

    first: Stream
    others: tuple[Path, ...]
    columns: Wanted
    encoding: str | None

    def __iter__(self) -> Iterator[Line]:
        return chain.from_iterable(map(self._lines, self._streams()))

    @property
    def total(self) -> int | None:
        """How many rows there are, where that is known before they are read."""
        count = 0
        for stream in self._streams():
            if stream.total is None:
                return None
            count += stream.total
        return count

    @property
    def notes(self) -> list[str]:
        """What a person should be told of the choices that were made."""
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

    def _streams(self) -> Iterator[Stream]:
        yield self.first
        like = self.first.sample if self.others else None
        for path in self.others:
            yield open_file(path, self.encoding, self.columns.text, like)

    def _lines(self, stream: Stream) -> Iterator[Line]:
        texts = (
            [self.columns.text]
            if self.columns.pair is None
            else [self.columns.text, self.columns.pair]
        )
        _check(stream.sample, self.columns)
        count = len(texts)
        for cells in stream.rows([*texts, *self.columns.keep]):
            text, *pair = (clean_text(cell)[0] for cell in cells[:count])
            yield Line(text, pair[0] if pair else None, tuple(cells[count:]))


def open_corpus(
    data: str | Path,
    text: str | None = None,
    pair: str | None = None,
    keep: Sequence[str] = (),
    encoding: str | None = None,
) -> Corpus:
    """Finds the sources and, by the first rows, the columns.

    Args:
        data: a file, a folder of such files (read in the order of their names), `hub:NAME[/CONFIG]`
            or `example:NAME`, of which the train split is read.
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
    columns = Wanted(*find_texts(sample, text, pair), tuple(keep))
    _check(sample, columns)
    return Corpus(first, others, columns, encoding)


def _sources(data: str | Path, text: str, encoding: str | None) -> tuple[Stream, tuple[Path, ...]]:
    name = str(data)
    if name.startswith("hub:"):
        return HubStream(name.removeprefix("hub:")), ()
    if name.startswith("example:"):
        return TableStream(read_example(name.removeprefix("example:")).splits["train"]), ()
    first, *others = _files(Path(data).expanduser())
    return open_file(first, encoding, text), tuple(others)


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


def _check(sample: Table, columns: Wanted) -> None:
    for name, option in columns.options.items():
        require(sample, name, option)
