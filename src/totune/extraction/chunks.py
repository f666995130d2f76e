"""Rows cut into shards, and what a finished shard was made of."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from totune.data.examples import Examples
from totune.data.tables import Cell
from totune.errors import ConfigError, DataError
from totune.extraction.corpus import Line


@dataclass(frozen=True)
class Chunk:
    """The rows of one shard.

    Attributes:
        shard: its number, from 0.
        first: the number of its first row among all, from 0.
    """

    shard: int
    first: int
    lines: tuple[Line, ...]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def examples(self) -> Examples:
        texts = tuple(line.text for line in self.lines)
        pairs = tuple(line.pair for line in self.lines if line.pair is not None)
        return Examples(texts, pairs=pairs or None)

    def kept(self, at: int) -> list[Cell]:
        """The cells of the kept column number `at`."""
        return [line.kept[at] for line in self.lines]

    def digest(self, rows: int | None = None) -> str:
        """A hash of the first `rows` rows, of all if None."""
        hasher = hashlib.sha256()
        for text, pair, kept in self.lines[:rows]:
            for cell in (text, pair, *kept):
                mark = b"\x1e" if cell is None else cell.encode("utf-8", "surrogatepass") + b"\x1f"
                hasher.update(mark)
        return hasher.hexdigest()[:32]


@dataclass(frozen=True)
class Mark:
    """A finished shard.

    Attributes:
        shard: its number.
        file: its name in the folder.
        first: the number of its first row.
        rows: how many it has.
        digest: of the rows it was made of.
        truncated: how many of them were cut.
        bytes: the file's size.
        sha256: of the file.
    """

    shard: int
    file: str
    first: int
    rows: int
    digest: str
    truncated: int
    bytes: int
    sha256: str


def cut(lines: Iterable[Line], rows_per_shard: int) -> Iterator[Chunk]:
    """Yields the rows shard by shard; holds one shard's at a time."""
    source = iter(lines)
    shard = 0
    while rows := tuple(islice(source, rows_per_shard)):
        yield Chunk(shard, shard * rows_per_shard, rows)
        shard += 1


def pending(chunks: Iterable[Chunk], finished: Mapping[int, Mark]) -> Iterator[Chunk]:
    """Yields the shards that are not finished; what was finished is checked against its rows.

    Rows may have been appended since: then the shard that was the last is made anew.

    Raises:
        ConfigError: a finished shard was made of other rows, or there are fewer rows than then.
        DataError: there is no row at all.
    """
    last = -1
    for chunk in chunks:
        last = chunk.shard
        mark = finished.get(last)
        if mark is not None and chunk.digest(mark.rows) != mark.digest:
            raise ConfigError(
                f"Rows {chunk.first + 1:,} to {chunk.first + mark.rows:,} of the data are not "
                f"those that {mark.file} was made of. Choose another folder with --out."
            )
        if mark is None or mark.rows < len(chunk):
            yield chunk
    if last < 0:
        raise DataError("The data holds no rows.")
    beyond = [mark.file for shard, mark in sorted(finished.items()) if shard > last]
    if beyond:
        raise ConfigError(
            f"The data holds fewer rows than those that {beyond[0]} was made of. Choose another "
            "folder with --out."
        )
