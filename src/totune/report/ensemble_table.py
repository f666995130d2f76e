"""The table of a study's ensembles."""

import math
from collections.abc import Sequence

from totune.advice import Ensemble
from totune.report import formatting
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import StudyInfo

_RULES = {
    "classification": "the class with the highest mean probability",
    "regression": "the mean of their numbers",
    "tagging": "for each word the tag that most of them give (of equally many the one whose first "
    "voter has the best dev score)",
}


def ensemble_table(info: StudyInfo, ensembles: Sequence[Ensemble]) -> Table:
    """Every ensemble's test scores beside those of its members, and what it costs to predict."""
    columns = (
        Column("Ensemble", numeric=False),
        *(Column(formatting.metric_label(metric)) for metric in info.metrics),
        Column("Stored per task"),
        Column("Prediction, ms/example"),
    )
    rows = tuple(Row(_cells(info, ensemble)) for ensemble in ensembles)
    notes = (
        "Below a score: the mean score of the members alone and what the ensemble gains, positive "
        "where it is better. The best strategies are those by dev score. Storage and prediction "
        "time are the sums of all members'.",
    )
    return Table("Ensembles", columns, rows, notes)


def ensemble_words(info: StudyInfo) -> str:
    """What the members do together, and what these scores are not good for."""
    rule = _RULES.get(info.task, "one answer")
    return (
        f"Several trained models that answer together: {rule}. This is told for information and is "
        "no part of the advice: choosing an ensemble by these scores would be choosing on test."
    )


def _cells(info: StudyInfo, ensemble: Ensemble) -> tuple[Cell, ...]:
    storage, latency = ensemble.storage_bytes, ensemble.latency_milliseconds
    return (
        word(ensemble.name, _members(ensemble)),
        *(_score(metric, ensemble) for metric in info.metrics),
        number(storage, formatting.byte_size(storage)),
        number(latency, formatting.significant(latency, 2)),
    )


def _members(ensemble: Ensemble) -> str:
    """The members, where the name does not tell them."""
    one_strategy = " x " in ensemble.name
    return "" if one_strategy else ", ".join(ensemble.members)


def _score(metric: str, ensemble: Ensemble) -> Cell:
    found = ensemble.test.get(metric, math.nan)
    alone = formatting.score(metric, ensemble.alone.get(metric))
    gain = formatting.score(metric, ensemble.gain.get(metric), signed=True)
    return number(found, formatting.score(metric, found), f"alone {alone}, {gain}")
