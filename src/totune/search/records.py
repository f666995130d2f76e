"""What a search leaves behind: plain data in files, from which tables and figures are drawn.

Reading it needs no Optuna.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from totune.errors import ConfigError
from totune.io import read_checked_json, write_checked_json
from totune.runs.records import RunRecord

FOLDER = "search"  # inside a study's folder
HEAD = "head."  # begins the names of the head's options

State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class TrialRecord:
    """One try of a strategy's options.

    Attributes:
        number: from 0 in the order of asking; trial 0 has the defaults.
        options: what was tried, by option name (`head.NAME` for the head's).
        state: `pruned` if it was ended early, `failed` if it could not be trained.
        score: the dev metric of the epoch that it kept (of its best, if pruned), in the metric's
            own scale; None if it failed.
        curve: the dev metric after each epoch.
        seconds: wall time, frozen features apart.
        same_as: number of an earlier trial with the same options, whose numbers these are; else
            None.
        error: the reason of a failure, or "".
    """

    number: int
    options: dict[str, Any]
    state: State
    score: float | None
    curve: list[float] = field(default_factory=list)
    seconds: float = 0.0
    same_as: int | None = None
    error: str = ""


@dataclass(frozen=True)
class SearchRecord:
    """The search of one strategy.

    Attributes:
        strategy: the label it is compared under.
        metric: the dev metric that was maximised (or minimised, if lower is better).
        ranges: by option: {"kind": "floats", "low": ..., "high": ..., "log": ...}, {"kind":
            "ints", ...} or {"kind": "choices", "values": [...]}.
        fixed: options that were set by hand and not searched.
        trials: in the order of asking.
        best: number of the winning trial.
        importance: by option, the share of the score's variance over trials that it explains
            (fANOVA); empty where trials are too few to estimate it.
        budget: {"trials": 20} or {"seconds": 600.0}.
        seed: of the sampler and of every trial's training.
    """

    strategy: str
    metric: str
    ranges: dict[str, dict[str, Any]]
    fixed: dict[str, Any]
    trials: list[TrialRecord]
    best: int
    importance: dict[str, float]
    budget: dict[str, float]
    seed: int

    @property
    def scored(self) -> list[TrialRecord]:
        """The trials with a score that is a number, pruned ones too, in the order of asking."""
        return [
            trial
            for trial in self.trials
            if trial.score is not None and math.isfinite(trial.score) and trial.state != "failed"
        ]

    @property
    def failed(self) -> list[TrialRecord]:
        """The trials that could not be trained."""
        return [trial for trial in self.trials if trial.state == "failed"]

    @property
    def winner(self) -> TrialRecord | None:
        """The winning trial; None if no trial has a score."""
        return next((trial for trial in self.scored if trial.number == self.best), None)

    @property
    def defaults(self) -> TrialRecord | None:
        """The trial of the defaults; None if it has no score."""
        return next((trial for trial in self.scored if trial.number == 0), None)

    @property
    def seconds(self) -> float:
        """Wall time of all trials; a repeated one took none."""
        return sum(trial.seconds for trial in self.trials if trial.same_as is None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "SearchRecord":
        return cls(**{**data, "trials": [TrialRecord(**trial) for trial in data["trials"]]})


def record_path(study: Path, label: str) -> Path:
    """The file of a finished search; a label may hold what a file's name may not."""
    return study / FOLDER / f"{quote(label, safe=' ')}.json"


def write_search(study: Path, record: SearchRecord) -> None:
    """Writes a finished search into a study's folder."""
    write_checked_json(record_path(study, record.strategy), record.to_json())


def read_searches(study: Path) -> list[SearchRecord]:
    """The finished searches in a study's folder, by file name; none where there are none.

    The folder may hold searches of other settings than the study's last.

    Raises:
        ConfigError: if a file there cannot be read.
    """
    return [_read(path) for path in sorted((study / FOLDER).glob("*.json"))]


def _read(path: Path) -> SearchRecord:
    try:
        return SearchRecord.from_json(read_checked_json(path))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{path} cannot be read as a search of this version ({error}). Remove it, or search "
            "again."
        ) from None


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
    if search.winner is None:
        return True
    options = search.winner.options
    own = [run.config for run in runs if run.strategy == search.strategy]
    return all(_has(config, name, value) for config in own for name, value in options.items())


def _has(config: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a run's configuration has an option's value."""
    member = "head" if name.startswith(HEAD) else "strategy"
    options: Mapping[str, Any] = (config.get(member) or {}).get("options") or {}
    return bool(options.get(name.removeprefix(HEAD)) == value)
