"""How much of a training is done, by steps or by the clock, and the rate that goes with it."""

import math
from dataclasses import dataclass

from totune.pretraining.course import Course
from totune.pretraining.settings import PretrainingSettings

EVALUATIONS = 10  # in equal parts of the training, where no number of steps is chosen


@dataclass(frozen=True)
class Budget:
    """The end of a training: whichever is reached first.

    Attributes:
        steps: None for no limit but the clock.
        seconds: None for no limit but steps.
        warmup_ratio: share in which the rate rises.
    """

    steps: int | None
    seconds: float | None
    warmup_ratio: float

    @classmethod
    def of(cls, settings: PretrainingSettings, course: Course) -> "Budget":
        """From what was chosen; the whole text once if nothing was."""
        per_step = max(course.words, 1e-9)
        limits = [] if settings.max_steps is None else [settings.max_steps]
        if settings.max_words is not None:
            limits.append(max(1, math.ceil(settings.max_words / per_step - 1e-6)))
        if not limits and settings.max_seconds is None:
            limits.append(max(1, math.floor(course.corpus_words / per_step + 1e-6)))
        return cls(min(limits, default=None), settings.max_seconds, settings.warmup_ratio)

    def share(self, step: int, seconds: float) -> float:
        """How much is done after `step` steps in `seconds`; 1 or more is the end."""
        by_steps = step / self.steps if self.steps else 0.0
        by_clock = seconds / self.seconds if self.seconds else 0.0
        return max(by_steps, by_clock)

    def factor(self, share: float) -> float:
        """What the peak rate is multiplied by: from 0 up to 1, and down to 0 at the end.

        It never is 0 while steps are made.
        """
        share = min(share + 0.5 / (self.steps or 1_000), 1.0)
        if share < self.warmup_ratio:
            return share / self.warmup_ratio
        return max(1e-3, (1 - share) / (1 - self.warmup_ratio))
