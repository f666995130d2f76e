"""What the search of one strategy may take: trials, or time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """So many trials, or so many seconds.

    Attributes:
        trials: how many; the first has the defaults.
        seconds: of training, over all trials and whoever ran them, frozen features apart. No trial
            is begun after them, but the first is always.
    """

    trials: int | None = None
    seconds: float | None = None

    def covers(self, taken: Sequence[float | None]) -> float:
        """How many trials belong to the search; infinitely many while time is left.

        Args:
            taken: the seconds of each trial so far, in the order of asking; None while it runs.
        """
        if self.trials is not None:
            return self.trials
        assert self.seconds is not None, "a budget is of one kind or the other"
        used = 0.0
        for count, seconds in enumerate(taken, start=1):
            used += seconds or 0.0
            if used >= self.seconds:
                return count
        return math.inf

    def to_json(self) -> dict[str, float]:
        facts = {"trials": self.trials, "seconds": self.seconds}
        return {name: value for name, value in facts.items() if value is not None}
