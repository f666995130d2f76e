"""What strategies score on corpora: from a file, or from a study of each."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from totune.data.columns import require
from totune.data.readers import read_table
from totune.data.tables import Cell, SourceTable
from totune.errors import ConfigError, DataError
from totune.registry import did_you_mean
from totune.report.groups import by_strategy
from totune.runs.records import RunRecord, StudyInfo

Scores = dict[str, dict[str, float]]
COLUMNS = ("corpus", "frozen", "tuned")


def read_scores(path: Path) -> Scores:
    """Scores by corpus, from a table with the columns corpus, frozen and tuned.

    Raises:
        DataError: if the file cannot be read, lacks a column, names a corpus twice, or a score is
            no number.
    """
    table = read_table(path)
    names, *columns = (require(table, name, "scores") for name in COLUMNS)
    scores: Scores = {}
    for at, name in enumerate(names):
        if not name or name in scores:
            fault = f"{name!r} has a row already" if name else "there is no corpus"
            raise DataError(f"{path} {table.place([at])}: {fault}; each has one row.")
        scores[name] = {
            kind: _number(table, at, kind, cells[at])
            for kind, cells in zip(COLUMNS[1:], columns, strict=True)
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
    studies: Mapping[str, tuple[StudyInfo, Sequence[RunRecord]]], frozen: str, tuned: str
) -> tuple[str, Scores]:
    """The metric, and the mean test score of two strategies in the study of each corpus.

    Args:
        studies: by corpus.
        frozen: the strategy that leaves the encoder as it is.
        tuned: the one that does not.

    Raises:
        ConfigError: if the studies compare by different metrics, or a strategy is missing in one or
            has no usable run.
    """
    metrics = {name: info.metric for name, (info, _) in studies.items()}
    if len(set(metrics.values())) > 1:
        told = ", ".join(f"{name} by {metric}" for name, metric in metrics.items())
        raise ConfigError(f"The studies compare by different metrics: {told}.")
    scores = {
        name: {
            kind: _mean(name, *study, label)
            for kind, label in zip(COLUMNS[1:], (frozen, tuned), strict=True)
        }
        for name, study in studies.items()
    }
    return next(iter(metrics.values())), scores


def _mean(name: str, info: StudyInfo, records: Sequence[RunRecord], strategy: str) -> float:
    groups = {group.strategy: group for group in by_strategy(info, records)}
    if strategy not in groups:
        raise ConfigError(
            f"The study of {name} has no strategy {strategy!r}. {did_you_mean(strategy, groups)}"
        )
    mean = groups[strategy].mean(info.metric)
    if mean is None:
        raise ConfigError(f"No run of {strategy} in the study of {name} has a usable test score.")
    return mean
