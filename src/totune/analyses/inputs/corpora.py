"""Corpora to compare: named texts from files, tables or datasets, and what strategies score."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from totune.data.columns import find_columns, require, resolve
from totune.data.conll import SAMPLE, is_conll
from totune.data.files import missing_file, read_lines, table_stem, table_suffix
from totune.data.readers import read_table
from totune.data.sources import load_dataset
from totune.data.sst import is_trees
from totune.data.tables import Cell, SourceTable
from totune.errors import ConfigError, DataError
from totune.progress import Progress
from totune.registry import did_you_mean
from totune.text import counted

if TYPE_CHECKING:
    from totune.runs.records import RunRecord, StudyInfo

_MOST_CORPORA = 50  # that one column may split a table into
_KINDS = ("frozen", "tuned")
_NAMED = "hub:", "example:"  # sources that are no paths

CorpusScores = dict[str, dict[str, float]]  # corpus -> score of the frozen, of the tuned encoder


class NamedTexts(NamedTuple):
    """Texts under a name, read again on every iteration."""

    name: str
    texts: Iterable[str]


@dataclass(frozen=True)
class DivergenceInputs:
    """A reference, the corpora compared with it, and what strategies score on them.

    Attributes:
        reference: such as a sample of what the encoder was pretrained on.
        others: the corpora of the task: a train set, genres.
        scores: by corpus, where known: of a `frozen` encoder and of a `tuned` one, in the metric's
            own scale.
        metric: name of the metric of these scores; "score" if it has none.
        strategies: labels of the frozen and of the tuned strategy.

    Raises:
        ConfigError: if there is nothing to compare, a name stands for two corpora, or scores are
            of none of them or no numbers.
    """

    reference: NamedTexts
    others: Sequence[NamedTexts]
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
            if not all(math.isfinite(pair.get(kind, math.nan)) for kind in _KINDS):
                faults.append(f"The scores of {name!r} must be two numbers, frozen and tuned.")
        if faults:
            raise ConfigError(faults)


@dataclass(frozen=True)
class CorpusColumns:
    """How texts are found in tables.

    Attributes:
        text: the column of texts; detected if None.
        pair: the column of second texts, which count as texts too.
        by: the column whose values split a table into corpora.
        encoding: of text files; UTF-8 if None.
    """

    text: str | None = None
    pair: str | None = None
    by: str | None = None
    encoding: str | None = None


# Texts by corpus


def read_corpora(
    sources: Sequence[str], columns: CorpusColumns, progress: Progress
) -> list[NamedTexts]:
    """One corpus per source, or per value of the column that splits it.

    Args:
        sources: a .txt file with a text per line (a paragraph, say), compressed or not; a table; a
            folder of splits, `hub:NAME` or `example:NAME`, of which all splits are read.
        columns: columns and encoding.
        progress: receives warnings of rows that are left out.

    Raises:
        DataError: if a source or a column is missing, or texts cannot be found.
        ConfigError: if a column is to split what is no table.
    """
    if columns.by is not None and all(map(_is_lines, sources)):
        raise ConfigError(f"by={columns.by} splits a table, and there is none among the data.")
    names = _names(sources)
    return [
        corpus
        for source, name in zip(sources, names, strict=True)
        for corpus in _read(source, name, columns, progress)
    ]


def read_reference(
    sources: Sequence[str], columns: CorpusColumns, progress: Progress
) -> NamedTexts:
    """One corpus of all sources together; takes and raises the same as `read_corpora`."""
    parts = read_corpora(sources, replace(columns, by=None), progress)
    texts = _Reread(lambda: chain.from_iterable(part.texts for part in parts))
    return NamedTexts(" + ".join(part.name for part in parts), texts)


@dataclass(frozen=True)
class _Reread:
    """Texts that are read again on every iteration."""

    read: Callable[[], Iterable[str]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())


def _names(sources: Sequence[str]) -> list[str]:
    """The stems of the sources; with their folder where two have the same."""
    stems = [_stem(source) for source in sources]
    return [
        f"{Path(source).resolve().parent.name}/{stem}" if stems.count(stem) > 1 else stem
        for source, stem in zip(sources, stems, strict=True)
    ]


def _stem(source: str) -> str:
    if source.startswith(_NAMED):
        return source.partition(":")[2]
    return table_stem(Path(source).expanduser().resolve().name)


def _is_dataset(source: str) -> bool:
    return source.startswith(_NAMED) or Path(source).expanduser().is_dir()


def _is_lines(source: str) -> bool:
    path = Path(source).expanduser()
    return not _is_dataset(source) and path.is_file() and table_suffix(path.name) == ".txt"


def _read(
    source: str, name: str, columns: CorpusColumns, progress: Progress
) -> Iterator[NamedTexts]:
    if columns.by is not None and _is_dataset(source):
        raise ConfigError(
            f"by={columns.by} splits one table, and {source} holds several. Name the file."
        )
    opened = _open(source, columns)
    if not isinstance(opened, SourceTable):
        yield NamedTexts(name, opened)
        return
    for warning in opened.remarks.warnings:
        progress.warn(warning)
    cells = _text_columns(opened, columns)
    if columns.by is None:
        yield NamedTexts(name, _texts(cells))
    else:
        yield from _split(opened, cells, columns.by, progress)


def _open(source: str, columns: CorpusColumns) -> SourceTable | Iterable[str]:
    """A table, or the texts of a source that has none: all that touches files is here and below."""
    path = Path(source).expanduser()
    if _is_dataset(source):
        data = load_dataset(source, text=columns.text, pair=columns.pair, encoding=columns.encoding)
        rows = chain.from_iterable(data.splits().values())
        return tuple(chain.from_iterable(rows))
    if not path.exists():
        raise missing_file(path)
    if _is_lines(source):
        return _Reread(lambda: _read_lines(path, columns.encoding))
    return read_table(path, columns.encoding).without_parts()


def _read_lines(path: Path, encoding: str | None) -> Iterable[str]:
    """The lines of a text file; of sentiment trees and CoNLL columns, the sentences."""
    head = list(islice(read_lines(path, encoding), SAMPLE))
    trees = is_trees(head)
    if trees or is_conll(head):
        table = read_table(path, encoding).without_parts()
        return _texts(_text_columns(table, CorpusColumns("sentence" if trees else None)))
    return (line for line in read_lines(path, encoding) if line.strip())


# Texts in tables


def _text_columns(table: SourceTable, columns: CorpusColumns) -> list[list[Cell]]:
    """The cells of the column of texts and, of pairs, of second texts."""
    text, pair = columns.text, columns.pair
    if text is None and len(table.columns) == 1:
        (text,) = table.columns
    if text is None:
        try:
            found, _ = find_columns(table, pair=pair)
        except DataError:
            raise DataError(
                f"{table.source}: which column holds the texts is not clear. Name it with text, "
                f"and a second one with pair. Its columns: {', '.join(table.columns)}."
            ) from None
        text, pair = found.text, found.pair
    named = [("text", text)] if pair is None else [("text", text), ("pair", pair)]
    return [table.columns[resolve(table, column, option)] for option, column in named]


def _split(
    table: SourceTable, cells: Sequence[Sequence[Cell]], by: str, progress: Progress
) -> Iterator[NamedTexts]:
    """A corpus per value of a column, in the order of their first rows."""
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
            f"into as many corpora; 1 to {_MOST_CORPORA} can be compared. Choose another column "
            "with by."
        )
    for name, chosen in rows.items():
        yield NamedTexts(name, _texts([[column[at] for at in chosen] for column in cells]))


def _texts(cells: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """All texts, both of a pair; empty ones are left out."""
    return tuple(cell for row in zip(*cells, strict=True) for cell in row if cell and cell.strip())


# Scores by corpus


def read_scores(path: Path) -> CorpusScores:
    """Scores by corpus, from a table with the columns corpus, frozen and tuned.

    Raises:
        DataError: if the file cannot be read, lacks a column, names a corpus twice, or a score is
            no number.
    """
    table = read_table(path)
    names, *columns = (require(table, name, "scores") for name in ("corpus", *_KINDS))
    scores: CorpusScores = {}
    for at, name in enumerate(names):
        if not name or name in scores:
            fault = f"{name!r} has a row already" if name else "there is no corpus"
            raise DataError(f"{path} {table.place([at])}: {fault}; each has one row.")
        scores[name] = {
            kind: _number(table, at, kind, cells[at])
            for kind, cells in zip(_KINDS, columns, strict=True)
        }
    return scores


def _number(table: SourceTable, at: int, column: str, cell: Cell) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"{table.source} {table.place([at])}: {column} is {cell!r}; a score must be a number."
        )
    return value


def scores_of_studies(
    studies: "Mapping[str, tuple[StudyInfo, Sequence[RunRecord]]]", frozen: str, tuned: str
) -> tuple[str, CorpusScores]:
    """The metric, and the mean test score of two strategies in the study of each corpus.

    Args:
        studies: the study of each corpus, by the corpus's name.
        frozen: label of the strategy that leaves the encoder as it is.
        tuned: label of the strategy that tunes it.

    Raises:
        ConfigError: if the studies compare by different metrics, or a strategy is missing in one or
            has no usable run.
    """
    metrics = {name: info.metric for name, (info, _) in studies.items()}
    if len(set(metrics.values())) > 1:
        listed = ", ".join(f"{name} by {metric}" for name, metric in metrics.items())
        raise ConfigError(f"The studies compare by different metrics: {listed}.")
    scores = {
        name: {
            kind: _mean_score(name, *study, label)
            for kind, label in zip(_KINDS, (frozen, tuned), strict=True)
        }
        for name, study in studies.items()
    }
    return next(iter(metrics.values())), scores


def _mean_score(
    name: str, info: "StudyInfo", records: "Sequence[RunRecord]", strategy: str
) -> float:
    from totune.report.groups import by_strategy

    groups = {group.strategy: group for group in by_strategy(info, records)}
    if strategy not in groups:
        raise ConfigError(
            f"The study of {name} has no strategy {strategy!r}. {did_you_mean(strategy, groups)}"
        )
    mean = groups[strategy].mean(info.metric)
    if mean is None:
        raise ConfigError(f"No run of {strategy} in the study of {name} has a usable test score.")
    return mean
