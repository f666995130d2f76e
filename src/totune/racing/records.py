"""The record of a race: `race.json`, from which its section is drawn, and its sentences."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from totune.advice.compare import Comparison, RaceFindings
from totune.advice.summary import finite
from totune.advice.wording import amount
from totune.errors import ConfigError
from totune.io import read_checked_json, write_checked_json
from totune.metrics import Metric

FILE = "race.json"

Reason = Literal[
    "worse",
    "keeps up",
    "more expensive",
    "cannot win",
    "stays open",
    "changes nothing",
    "constant answer",
    "no usable run",
]
Ending = Literal["settled", "seeds used up", "budget used up", ""]

_WHOLE = ("more_seeds", "test_rows")  # numbers of a comparison that may be missing
_FORMER_KEYS = {"ran": "strategies", "left": "eliminated"}  # of a round, as once written
_FORMER_REASONS: dict[str, Reason] = {"dearer": "more expensive"}
_IN_SHORT: dict[Reason, str] = {
    "worse": "credibly worse",
    "keeps up": "keeps up, settled",
    "more expensive": "more expensive than one that keeps up",
    "cannot win": "more expensive, and unlikely to win",
    "stays open": "open, and likely to stay so",
    "changes nothing": "the verdict stays open without it",
    "constant answer": "does not beat a constant answer",
    "no usable run": "no usable run",
}


@dataclass(frozen=True)
class Elimination:
    """A strategy that leaves the race, with the reason.

    Attributes:
        reason: "worse": credibly, by more than the tolerance. "keeps up": credibly within the
            tolerance of the best, so nothing is open about it. "more expensive": than one that
            keeps up. "cannot win": more expensive than the best so far, and unlikely to come out
            ahead. "stays open": cheaper, but all the seeds would probably not settle it. "changes
            nothing": the verdict stays open because of another, and this one is unlikely to keep
            up. "constant answer": it does not beat one. "no usable run".
        against: name of the strategy that it was compared with, or "".
        seeds: number of its usable runs.
        chance: probability that the remaining seeds would change the outcome, where that is the
            reason.
        comparison: the last comparison with the best; None without a usable run.
    """

    strategy: str
    reason: Reason
    against: str = ""
    seeds: int = 0
    chance: float | None = None
    comparison: Comparison | None = None

    @property
    def in_short(self) -> str:
        """The reason in a few words."""
        chance = "" if self.chance is None else f" ({self.chance:.0%})"
        return f"{_IN_SHORT[self.reason]}{chance}"

    def describe(self, metric: Metric, tolerance: float) -> str:
        """The strategy and the reason in one sentence."""
        limit, than = amount(tolerance, metric), self.against
        chance = f"{self.chance or 0:.0%}"
        why = {
            "worse": f"it is credibly worse than {than} by more than {limit}",
            "keeps up": f"it credibly keeps up with {than} within {limit}",
            "more expensive": f"it costs more than one that keeps up with {than} within {limit}",
            "cannot win": f"it costs more than {than}, and the seeds that are left would bring it "
            f"ahead by more than {limit} with a probability of {chance}",
            "stays open": f"the seeds that are left would settle whether it keeps up with {than} "
            f"with a probability of {chance}",
            "changes nothing": "the verdict stays open because of another, and the seeds that are "
            f"left would find that it keeps up with {than} with a probability of {chance}",
            "constant answer": "it does not beat a constant answer",
            "no usable run": "it has no usable run",
        }[self.reason]
        return f"{self.strategy} leaves the race: {why}."


@dataclass(frozen=True)
class Round:
    """One round, planned or finished.

    Attributes:
        fraction: share of the training rows that its runs have.
        seeds: those of its runs.
        strategies: names of those that ran.
        seconds: cost of its runs, features included.
        best: strategy of those in the race with the best mean, or None without a usable run.
        eliminated: strategies that left after it.
    """

    fraction: float
    seeds: tuple[int, ...]
    strategies: tuple[str, ...] = ()
    seconds: float = 0.0
    best: str | None = None
    eliminated: tuple[Elimination, ...] = ()


@dataclass(frozen=True)
class Race:
    """A race, finished or under way.

    Attributes:
        seeds: largest number of seeds per strategy.
        alpha: error probability of all interim analyses together.
        rounds: those that are finished, in their order.
        open: comparisons of the strategies that remain after the last round.
        ended: the reason why there is no further round; "" while the race goes on.
        full_seconds: estimated cost of all strategies over all seeds, from the mean of their runs.
    """

    metric: str
    tolerance: float
    seeds: int
    alpha: float
    rounds: tuple[Round, ...] = ()
    open: tuple[Comparison, ...] = ()
    ended: Ending = ""
    full_seconds: float = math.nan

    @property
    def eliminated(self) -> dict[str, Elimination]:
        """The strategies that left, by name."""
        return {gone.strategy: gone for round in self.rounds for gone in round.eliminated}

    @property
    def seconds(self) -> float:
        """The cost of its runs."""
        return sum(round.seconds for round in self.rounds)

    @property
    def share(self) -> float:
        """The share of the full study's cost; nan where costs are not known."""
        return self.seconds / self.full_seconds if self.full_seconds > 0 else math.nan

    def findings(self) -> RaceFindings | None:
        """The findings that the advice takes over; None before a round on all training rows."""
        whole = [round for round in self.rounds if round.fraction == 1 and round.best]
        if not whole:
            return None
        gone = [one.comparison for one in self.eliminated.values() if one.comparison is not None]
        best = str(whole[-1].best)
        found = tuple(each for each in (*gone, *self.open) if each.strategy != best)
        return RaceFindings(best, found)

    def save(self, folder: Path) -> None:
        """Writes `race.json` into a study's folder."""
        write_checked_json(folder / FILE, finite(asdict(self)))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Race":
        """The reverse of `save`."""
        rounds = tuple(_round(each) for each in data["rounds"])
        full = math.nan if data["full_seconds"] is None else data["full_seconds"]
        compared = tuple(_comparison(each) for each in data["open"])
        return cls(**{**data, "rounds": rounds, "open": compared, "full_seconds": full})


def read_race(folder: Path) -> Race | None:
    """The race of a study's folder, or None.

    Raises:
        ConfigError: if the file cannot be read.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return Race.from_json(read_checked_json(path))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{path} cannot be read as a race ({error}). Remove it and run the same command again: "
            "no finished run is lost."
        ) from None


def _round(data: dict[str, Any]) -> Round:
    """A round; an earlier version called some of its parts by other names."""
    data = {_FORMER_KEYS.get(name, name): value for name, value in data.items()}
    lists = {name: tuple(data[name]) for name in ("seeds", "strategies")}
    eliminated = tuple(_elimination(each) for each in data["eliminated"])
    return Round(**{**data, **lists, "eliminated": eliminated})


def _elimination(data: dict[str, Any]) -> Elimination:
    reason = _FORMER_REASONS.get(data["reason"], data["reason"])
    return Elimination(**{**data, "reason": reason, "comparison": _comparison(data["comparison"])})


def _comparison(data: dict[str, Any] | None) -> Any:
    if data is None:
        return None
    known: dict[str, Any] = {
        name: math.nan if value is None and name not in _WHOLE else value
        for name, value in data.items()
    }
    return Comparison(**known)
