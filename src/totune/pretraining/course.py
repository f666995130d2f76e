"""What is read when: short rows first, whole rows last.

A model that attends over few pieces learns sooner where to look, and its steps are cheaper; the
last part of the training reads whole rows, so that every place in them is known. BERT was trained
so: rows of 128 pieces for nine tenths of the steps, then rows of 512 (Devlin et al. 2019, A.2). A
short training needs a larger last part, since its rate is small by then.
"""

from dataclasses import dataclass

from totune.pretraining.rows import Rows


@dataclass(frozen=True)
class Stage:
    """A part of the training with rows of one length.

    Attributes:
        train: rows to learn from.
        validation: rows held out.
        batch_size: rows of an optimizer step.
        length: pieces that a row has at the most, special ones too.
    """

    train: Rows
    validation: Rows
    batch_size: int
    length: int

    @property
    def words(self) -> float:
        """Of the text, read in a step."""
        return self.train.words / max(1, len(self.train)) * self.batch_size


@dataclass(frozen=True)
class Course:
    """The stages of a training: whole rows, or short ones first.

    Attributes:
        stages: one, or two.
        turn: the share of the training after which the second begins; 0 if there is one.
    """

    stages: tuple[Stage, ...]
    turn: float = 0.0

    def at(self, share: float) -> int:
        """The number of the stage after this share of the training."""
        return int(len(self.stages) > 1 and share >= self.turn)

    @property
    def words(self) -> float:
        """Of the text, read in a step on average."""
        first, last = self.stages[0], self.stages[-1]
        return self.turn * first.words + (1 - self.turn) * last.words

    @property
    def corpus_words(self) -> int:
        """Of the text that is learnt from."""
        return self.stages[-1].train.words
