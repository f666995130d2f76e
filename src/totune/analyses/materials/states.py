"""What analyses of hidden states read: a vector per row and block, of encoders as they are now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import View
from totune.errors import ConfigError
from totune.features import compute
from totune.inputs.encoded import EncodingOptions, frame
from totune.model import Model
from totune.runs.context import Context
from totune.runs.reopen import FinishedRun
from totune.tasks.base import Task

Pool = Literal["mean", "max", "cls"]
SplitName = Literal["train", "dev", "test"]


@dataclass(frozen=True)
class Subject:
    """An encoder as it was pretrained, or as one run has adapted it.

    Attributes:
        label: "pretrained", or the strategy's.
        seed: of the run.
    """

    label: str
    seed: int | None
    encoder: Encoder


class States:
    """Hidden states of one or more encoders over the rows of a dataset.

    Args:
        context: data, task, the pretrained encoder and the cache.
        runs: those whose adapted encoders are looked into as well.

    Raises:
        ConfigError: if words are tagged: there a row has no one label.
    """

    def __init__(self, context: Context, runs: Sequence[FinishedRun] = ()) -> None:
        if context.task.per_word:
            raise ConfigError(
                f"This analysis compares one vector per text with its label, and the task "
                f"{context.task.name} has a label per word. Use data with a label per text."
            )
        self.context = context
        self._runs = runs

    @property
    def task(self) -> Task:
        return self.context.task

    @property
    def depth(self) -> int:
        """L: vectors are of blocks 0..L."""
        return self.context.loaded.encoder.depth

    def subjects(self) -> Iterator[Subject]:
        """The pretrained encoder, then those of runs that changed it, one in memory at a time."""
        encoder = self.context.loaded.encoder
        yield Subject("pretrained", None, encoder)
        pretrained = encoder.fingerprint()
        for run in self._runs:
            adapted = _frozen(run.model(self.context)).encoder
            if adapted.inserted is not None or adapted.fingerprint() != pretrained:
                yield Subject(run.record.strategy, run.record.seed, adapted)

    def targets(self, split: SplitName) -> np.ndarray:
        """Class numbers or scores, [N]."""
        return self.task.targets(self.context.dataset.splits()[split].labels or ())

    def vectors(
        self,
        subject: Subject,
        split: SplitName,
        pooling: Pool = "mean",
        kept: np.ndarray | None = None,
    ) -> np.ndarray:
        """The states of every block, pooled over a row's tokens: [N, L + 1, H] float32.

        Both texts of a pair count as one sequence; an encoder that reads whole words encodes each
        alone.

        Args:
            subject: whose they are.
            split: of the data.
            pooling: over tokens.
            kept: which rows, from 0; all if None.

        Raises:
            ConfigError: if `pooling` is `cls` and the encoder has no first token that speaks for
                the row.
        """
        encoder, context = subject.encoder, self.context
        examples = context.dataset.splits()[split]
        if kept is not None:
            examples = examples.take(kept)
        apart = encoder.reads_words and examples.pairs is not None
        if pooling == "cls" and encoder.reads_words:
            raise ConfigError(
                f"pooling=cls: an encoder of type {encoder.kind} has no token that stands for the "
                "whole text. Use pooling=mean or pooling=max."
            )
        encoding_options = EncodingOptions("separate" if apart else "joint")
        pieces = frame(
            examples, context.loaded.tokenizer, context.max_length, encoding_options
        ).pieces
        view = View(tuple(range(encoder.depth + 1)), pooling)
        name = f"blocks 0..{encoder.depth} of {split}, {subject.label}"
        features = context.cache.features(encoder, pieces, view, context.precision, name)
        if features is None:
            features = compute(encoder, pieces, view, context.precision == "bf16")
        found = features.rows(np.arange(len(pieces))).float()  # [N or 2 N, L + 1, H]
        inputs: np.ndarray = found.numpy()
        return _joined(inputs, pieces.lengths, pooling) if apart else inputs


def _frozen(model: Model) -> Model:
    model.requires_grad_(False)
    return model.eval()


def _joined(inputs: np.ndarray, lengths: np.ndarray, pooling: Pool) -> np.ndarray:
    """One vector per pair from those of its texts, as if their tokens had been pooled together."""
    first, second = inputs[::2], inputs[1::2]
    if pooling == "max":
        return np.asarray(np.maximum(first, second))
    share = (lengths[::2] / (lengths[::2] + lengths[1::2]))[:, None, None].astype(np.float32)
    return np.asarray(share * first + (1 - share) * second)
