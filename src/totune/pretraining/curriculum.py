"""What is read when, and until when: the lengths of rows, and the budget of a training."""

import math
from dataclasses import dataclass

from totune.pretraining.rows import PackedRows
from totune.pretraining.settings import PretrainingSettings


@dataclass(frozen=True)
class CurriculumStage:
    """A part of the training with rows of one length.

    Attributes:
        train: rows to train on.
        validation: rows held out.
        batch_size: rows of an optimizer step.
        length: maximum number of tokens of a row, special ones included.
    """

    train: PackedRows
    validation: PackedRows
    batch_size: int
    length: int

    @property
    def words(self) -> float:
        """Words of the text that a step reads on average."""
        return self.train.words / max(1, len(self.train)) * self.batch_size


class LengthCurriculum:
    """Short rows first, rows of full length last; or rows of full length throughout.

    A model that attends over few tokens learns sooner where to look, and its steps are cheaper; the
    last part of the training reads rows of full length, so that every position is trained. BERT was
    trained this way: rows of 128 tokens for nine tenths of the steps, then rows of 512 (Devlin et
    al. 2019, A.2). A short training needs a larger last part, since its rate is small by then.

    Args:
        stages: one, or two.
        short_ratio: share of the training that reads short rows, where there are two stages.
    """

    def __init__(self, stages: list[CurriculumStage], short_ratio: float = 0.0) -> None:
        self.stages = stages
        self.short_ratio = short_ratio if len(stages) > 1 else 0.0

    def stage_at(self, share: float) -> int:
        """The index of the stage after this share of the training."""
        return int(len(self.stages) > 1 and share >= self.short_ratio)

    @property
    def words_per_step(self) -> float:
        """Words of the text that a step reads on average over all stages."""
        first, last = self.stages[0], self.stages[-1]
        return self.short_ratio * first.words + (1 - self.short_ratio) * last.words

    @property
    def corpus_words(self) -> int:
        """Words of the text to train on."""
        return self.stages[-1].train.words


class TrainingBudget:
    """The end of a training, by steps or by the clock: whichever is reached first.

    Args:
        steps: optimizer steps; None for no limit but the clock.
        seconds: wall time of training; None for no limit but steps.
        warmup_ratio: share of the training in which the learning rate rises.
    """

    def __init__(self, steps: int | None, seconds: float | None, warmup_ratio: float) -> None:
        self.steps, self.seconds, self.warmup_ratio = steps, seconds, warmup_ratio

    @classmethod
    def of(cls, settings: PretrainingSettings, curriculum: LengthCurriculum) -> "TrainingBudget":
        """The budget that the settings ask for; one pass over the text if they name none."""
        per_step = max(curriculum.words_per_step, 1e-9)
        limits = [] if settings.max_steps is None else [settings.max_steps]
        if settings.max_words is not None:
            limits.append(max(1, math.ceil(settings.max_words / per_step - 1e-6)))
        if not limits and settings.max_seconds is None:
            limits.append(max(1, math.floor(curriculum.corpus_words / per_step + 1e-6)))
        return cls(min(limits, default=None), settings.max_seconds, settings.warmup_ratio)

    def share(self, step: int, seconds: float) -> float:
        """The share of the budget used by `step` steps in `seconds`; 1 or more is the end."""
        by_steps = step / self.steps if self.steps else 0.0
        by_clock = seconds / self.seconds if self.seconds else 0.0
        return max(by_steps, by_clock)

    def rate_factor(self, share: float) -> float:
        """The learning rate over its peak: rises from 0 to 1, then falls linearly to 0.

        Each step takes the value at its middle, which is never 0. Schedules of `strategies` count
        steps, whose number is not known where the clock ends the training.
        """
        share = min(share + 0.5 / (self.steps or 1_000), 1.0)
        if share < self.warmup_ratio:
            return share / self.warmup_ratio
        return max(1e-3, (1 - share) / (1 - self.warmup_ratio))
