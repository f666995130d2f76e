"""What a search leaves behind: plain data, from which tables and figures are drawn."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
        seconds: what it took, frozen features apart.
        same_as: number of an earlier trial with the same options, whose numbers these are; else
            None.
        error: why it failed, or "".
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
            (fANOVA); empty where trials are too few to tell.
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
    def winner(self) -> TrialRecord:
        return next(trial for trial in self.trials if trial.number == self.best)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "SearchRecord":
        return cls(**{**data, "trials": [TrialRecord(**trial) for trial in data["trials"]]})
