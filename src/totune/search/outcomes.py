"""What a search came to: the trials worth naming, its time, and whether a study's runs follow it.

A search whose trials all failed has no winner and no score of the defaults, so each may be None.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from totune.runs.records import RunRecord
from totune.search.records import SearchRecord, TrialRecord

_HEAD = "head."


def scored(record: SearchRecord) -> list[TrialRecord]:
    """The trials with a score that is a number, pruned ones too, in the order of asking."""
    return [
        trial
        for trial in record.trials
        if trial.score is not None and math.isfinite(trial.score) and trial.state != "failed"
    ]


def failed(record: SearchRecord) -> list[TrialRecord]:
    """The trials that could not be trained."""
    return [trial for trial in record.trials if trial.state == "failed"]


def winner(record: SearchRecord) -> TrialRecord | None:
    """The winning trial; None if no trial has a score."""
    return next((trial for trial in scored(record) if trial.number == record.best), None)


def defaults(record: SearchRecord) -> TrialRecord | None:
    """The trial of the defaults; None if it has no score."""
    return next((trial for trial in scored(record) if trial.number == 0), None)


def seconds(record: SearchRecord) -> float:
    """What the trials took; a repeated one took nothing."""
    return sum(trial.seconds for trial in record.trials if trial.same_as is None)


def applied(
    searches: Sequence[SearchRecord], strategies: Sequence[str], runs: Sequence[RunRecord]
) -> list[SearchRecord]:
    """The searches whose winners a study's runs are; a folder may hold others, of earlier settings.

    Args:
        searches: in any order; those of strategies without runs yet are kept.
        strategies: of the study.
        runs: of the study.
    """
    own = [search for search in searches if search.strategy in strategies]
    return [search for search in own if _is_applied(search, runs)]


def _is_applied(search: SearchRecord, runs: Sequence[RunRecord]) -> bool:
    won = winner(search)
    if won is None:
        return True
    own = [run.config for run in runs if run.strategy == search.strategy]
    return all(_has(config, name, value) for config in own for name, value in won.options.items())


def _has(config: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a run's configuration has an option's value."""
    member = "head" if name.startswith(_HEAD) else "strategy"
    options: Mapping[str, Any] = (config.get(member) or {}).get("options") or {}
    return bool(options.get(name.removeprefix(_HEAD)) == value)
