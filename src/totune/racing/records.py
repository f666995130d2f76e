"""What a race leaves behind: `race.json`, plain data from which its section is drawn."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from totune.advice.comparing import Comparison, Raced
from totune.advice.plain import finite
from totune.errors import ConfigError
from totune.runs.store import write_json

FILE = "race.json"

Reason = Literal[
    "worse",
    "keeps up",
    "dearer",
    "cannot win",
    "stays open",
    "changes nothing",
    "constant answer",
    "no usable run",
]
Ending = Literal["settled", "seeds used up", "budget used up", ""]

_WHOLE = ("more_seeds", "test_rows")  # numbers of a comparison that may be missing


@dataclass(frozen=True)
class Departure:
    """A strategy leaves the race.

    Attributes:
        reason: "worse": credibly, by more than the tolerance. "keeps up": credibly within the
            tolerance of the best, so nothing is open about it. "dearer": than one that keeps up.
            "cannot win": dearer than the best so far, and unlikely to come out ahead. "stays open":
            cheaper, but all the seeds would probably not settle it. "changes nothing": the verdict
            stays open because of another, and this one is unlikely to keep up. "constant
            answer": it does not beat one. "no usable run".
        against: the strategy that it was compared with, or "".
        seeds: usable runs that it had.
        chance: where that is the reason, how probable it is that the seeds left would change it.
        comparison: how it stood; None without a usable run.
    """

    strategy: str
    reason: Reason
    against: str = ""
    seeds: int = 0
    chance: float | None = None
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Round:
    """One round and what was seen after it.

    Attributes:
        fraction: share of the training rows that its runs had.
        seeds: of its runs.
        ran: strategies that were still in the race.
        seconds: what its runs cost, features included.
        best: best mean of those in the race, or None without a usable run.
        left: who left after it.
    """

    fraction: float
    seeds: tuple[int, ...]
    ran: tuple[str, ...]
    seconds: float
    best: str | None
    left: tuple[Departure, ...]


@dataclass(frozen=True)
class Race:
    """A race as far as it went.

    Attributes:
        seeds: how many there are at the most.
        alpha: the chance of error that all looks share.
        rounds: in their order.
        open: comparisons of those that were still in the race after the last round.
        ended: why there is no further round; "" while it goes on.
        full_seconds: what all strategies would have cost over all seeds, by the mean of their runs.
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
    def left(self) -> dict[str, Departure]:
        """Who left, by name."""
        return {gone.strategy: gone for round in self.rounds for gone in round.left}

    @property
    def seconds(self) -> float:
        """What its runs cost."""
        return sum(round.seconds for round in self.rounds)

    @property
    def share(self) -> float:
        """The part of the full study's cost; nan where costs are not known."""
        return self.seconds / self.full_seconds if self.full_seconds > 0 else math.nan

    def raced(self) -> Raced | None:
        """What advice takes over; None before all training rows were seen."""
        whole = [round for round in self.rounds if round.fraction == 1 and round.best]
        if not whole:
            return None
        gone = [left.comparison for left in self.left.values() if left.comparison is not None]
        best = str(whole[-1].best)
        found = tuple(each for each in (*gone, *self.open) if each.strategy != best)
        return Raced(best, found)

    def save(self, folder: Path) -> None:
        """Writes `race.json` into a study's folder."""
        write_json(finite(asdict(self)), folder / FILE)

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
        return Race.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{path} cannot be read as a race ({error}). Remove it and run the same command again: "
            "no finished run is lost."
        ) from None


def _round(data: dict[str, Any]) -> Round:
    left = tuple(
        Departure(**{**gone, "comparison": _comparison(gone["comparison"])})
        for gone in data["left"]
    )
    listed = {name: tuple(data[name]) for name in ("seeds", "ran")}
    return Round(**{**data, **listed, "left": left})


def _comparison(data: dict[str, Any] | None) -> Any:
    if data is None:
        return None
    known: dict[str, Any] = {
        name: math.nan if value is None and name not in _WHOLE else value
        for name, value in data.items()
    }
    return Comparison(**known)
