"""Corpora to compare: named streams of texts, read from files of text, tables or datasets."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from totune.data.columns import find_columns, resolve
from totune.data.conll import is_conll
from totune.data.files import decode, missing_file, read_bytes, table_stem, table_suffix
from totune.data.readers import read_table
from totune.data.sources import load_dataset
from totune.data.sst import is_trees
from totune.data.tables import Cell, Table
from totune.data.wording import counted
from totune.errors import ConfigError, DataError
from totune.progress import Progress
from totune.registry import did_you_mean

_MOST_CORPORA = 50  # that one column may split a table into


@dataclass(frozen=True)
class Corpus:
    """Texts under a name; they are read anew each time they are gone through."""

    name: str
    texts: Iterable[str]


@dataclass(frozen=True)
class Corpora:
    """A corpus, those that are compared with it, and what strategies score on them.

    Attributes:
        reference: such as a sample of what the encoder was pretrained on.
        others: the corpora of the task: a train set, genres.
        scores: by corpus, where known: of a `frozen` encoder and of a `tuned` one, in the metric's
            own scale.
        metric: that the scores are of; "score" if it has no name.
        strategies: what is called frozen, and what tuned.

    Raises:
        ConfigError: if there is nothing to compare, a name stands for two corpora, or scores are
            of none of them or no numbers.
    """

    reference: Corpus
    others: Sequence[Corpus]
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    metric: str = "score"
    strategies: tuple[str, str] = ("feature-extraction", "fine-tuning")

    def __post_init__(self) -> None:
        names = [corpus.name for corpus in self.others]
        if not names:
            raise ConfigError("There is no corpus to compare with the reference.")
        twice = sorted({name for name in names if names.count(name) > 1})
        faults = [
            f"Two corpora are called {name!r}; each needs a name of its own." for name in twice
        ]
        for name, pair in self.scores.items():
            if name not in names:
                known = did_you_mean(name, names)
                faults.append(f"There are scores of {name!r}, and no such corpus. {known}")
            if not all(math.isfinite(pair.get(kind, math.nan)) for kind in ("frozen", "tuned")):
                faults.append(f"The scores of {name!r} must be two numbers, frozen and tuned.")
        if faults:
            raise ConfigError(faults)


@dataclass(frozen=True)
class Reading:
    """How texts are found in tables.

    Attributes:
        text: the column of texts; detected if not named.
        pair: that of second texts, which count as texts too.
        by: the column whose values split a table into corpora.
        encoding: of text files; UTF-8 if not named.
    """

    text: str | None = None
    pair: str | None = None
    by: str | None = None
    encoding: str | None = None


def read_corpora(sources: Sequence[str], reading: Reading, progress: Progress) -> list[Corpus]:
    """One corpus per source, or per value of the column that splits it.

    Args:
        sources: a .txt file with a text per line (a paragraph, say), packed or not; a table; a
            folder of splits, `hub:NAME` or `example:NAME`, of which all splits are read.
        reading: columns and encoding.
        progress: told of rows that are left out.

    Raises:
        DataError: if a source or a column is missing, or texts cannot be found.
        ConfigError: if a column is to split what is no table.
    """
    names = _names(sources)
    found = (_read(*both, reading, progress) for both in zip(sources, names, strict=True))
    corpora = list(chain.from_iterable(found))
    if reading.by is not None and all(isinstance(corpus.texts, _Lines) for corpus in corpora):
        raise ConfigError(f"`by` {reading.by} splits a table, and there is none among the data.")
    return corpora


def read_reference(sources: Sequence[str], reading: Reading, progress: Progress) -> Corpus:
    """One corpus of all sources together; takes and raises the same as `read_corpora`."""
    whole = Reading(reading.text, reading.pair, None, reading.encoding)
    parts = read_corpora(sources, whole, progress)
    return Corpus(" + ".join(part.name for part in parts), _Joined([part.texts for part in parts]))


@dataclass(frozen=True)
class _Joined:
    parts: Sequence[Iterable[str]]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)


@dataclass(frozen=True)
class _Lines:
    """The lines of a text file; of sentiment trees and CoNLL columns, the sentences."""

    path: Path
    encoding: str | None

    def __iter__(self) -> Iterator[str]:
        text = decode(read_bytes(self.path)[0], self.path, self.encoding)
        trees = is_trees(text)
        if trees or is_conll(text):
            table = read_table(self.path, self.encoding).without_parts()
            return iter(_texts(_text_columns(table, Reading("sentence" if trees else None))))
        return (line for line in text.split("\n") if line.strip())


def _names(sources: Sequence[str]) -> list[str]:
    """The stems of the sources; with their folder where two have the same."""
    stems = [_stem(source) for source in sources]
    return [
        f"{Path(source).resolve().parent.name}/{stem}" if stems.count(stem) > 1 else stem
        for source, stem in zip(sources, stems, strict=True)
    ]


def _stem(source: str) -> str:
    if _is_named(source):
        return source.partition(":")[2]
    return table_stem(Path(source).expanduser().resolve().name)


def _is_named(source: str) -> bool:
    return source.startswith(("hub:", "example:"))


def _read(source: str, name: str, reading: Reading, progress: Progress) -> list[Corpus]:
    path = Path(source).expanduser()
    if _is_named(source) or path.is_dir():
        return [_dataset(source, name, reading)]
    if not path.exists():
        raise missing_file(path)
    if table_suffix(path.name) == ".txt":
        return [Corpus(name, _Lines(path, reading.encoding))]
    table = read_table(path, reading.encoding).without_parts()
    for warning in table.warnings:
        progress.warn(warning)
    columns = _text_columns(table, reading)
    if reading.by is None:
        return [Corpus(name, _texts(columns))]
    return _split(table, columns, reading.by, progress)


def _dataset(source: str, name: str, reading: Reading) -> Corpus:
    if reading.by is not None:
        raise ConfigError(
            f"`by` {reading.by} splits one table, and {source} holds several. Name the file."
        )
    data = load_dataset(source, text=reading.text, pair=reading.pair, encoding=reading.encoding)
    rows = chain.from_iterable(data.splits().values())
    return Corpus(name, tuple(chain.from_iterable(rows)))


def _text_columns(table: Table, reading: Reading) -> list[list[Cell]]:
    """The cells of the column of texts and, of pairs, of second texts."""
    text, pair = reading.text, reading.pair
    if text is None and len(table.columns) == 1:
        (text,) = table.columns
    if text is None:
        try:
            found, _ = find_columns(table, pair=pair)
        except DataError:
            raise DataError(
                f"{table.source}: which column holds the texts is not clear. Name it with `text`, "
                f"and a second one with `pair`. Its columns: {', '.join(table.columns)}."
            ) from None
        text, pair = found.text, found.pair
    named = [("text", text)] if pair is None else [("text", text), ("pair", pair)]
    return [table.columns[resolve(table, column, option)] for option, column in named]


def _split(
    table: Table, columns: Sequence[Sequence[Cell]], by: str, progress: Progress
) -> list[Corpus]:
    """A corpus per value of a column, in the order in which they come."""
    rows: dict[str, list[int]] = {}
    values = table.columns[resolve(table, by, "by")]
    for at, value in enumerate(values):
        rows.setdefault((value or "").strip(), []).append(at)
    without = rows.pop("", [])
    if without:
        progress.warn(
            f"{table.source}: {counted(len(without), 'row')} without {by!r} left out "
            f"({table.place(without)})."
        )
    if not rows or len(rows) > _MOST_CORPORA:
        raise DataError(
            f"{table.source}: column {by!r} has {len(rows):,} different values, and splits texts "
            f"into as many corpora; 1 to {_MOST_CORPORA} can be compared. Name another with `by`."
        )
    return [
        Corpus(name, _texts([[column[at] for at in chosen] for column in columns]))
        for name, chosen in rows.items()
    ]


def _texts(columns: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """All texts, both of a pair; empty ones are none."""
    return tuple(
        cell for row in zip(*columns, strict=True) for cell in row if cell and cell.strip()
    )
