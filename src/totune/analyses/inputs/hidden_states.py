"""Hidden states: a vector per row and block, of an encoder as pretrained or as runs adapted it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from totune.data.examples import SplitName
from totune.errors import ConfigError, DataError
from totune.progress import Progress

if TYPE_CHECKING:
    from totune.encoders.encoder import Encoder
    from totune.runs.context import Context
    from totune.runs.reopen import FinishedRun
    from totune.tasks.base import Task

Pool = Literal["mean", "max", "cls"]
PRETRAINED = "pretrained"  # the label of the encoder that no run has adapted


@dataclass(frozen=True)
class Subject:
    """An encoder as it was pretrained, or as one run has adapted it.

    Attributes:
        label: "pretrained", or the strategy's label.
        seed: the run's seed; None for the pretrained encoder.
        encoder: the encoder itself, in eval mode.
    """

    label: str
    seed: int | None
    encoder: "Encoder"

    def __str__(self) -> str:
        return self.label if self.seed is None else f"{self.label}, seed {self.seed}"


class HiddenStates:
    """Hidden states of one or more encoders over the rows of a dataset.

    Args:
        context: data, task, the pretrained encoder and the cache.
        runs: finished runs whose adapted encoders are included.

    Raises:
        ConfigError: if a row has no single label.
    """

    def __init__(self, context: "Context", runs: "Sequence[FinishedRun]" = ()) -> None:
        several = {"tagging": "a label per word", "multi-label": "any number of labels per text"}
        if context.task.name in several:
            raise ConfigError(
                f"This analysis compares one vector per text with its label, and the task "
                f"{context.task.name} has {several[context.task.name]}. Use data with a label per "
                "text."
            )
        self.context = context
        self._runs = runs

    @property
    def task(self) -> "Task":
        return self.context.task

    @property
    def depth(self) -> int:
        """L: there are vectors of blocks 0..L."""
        return self.context.loaded.encoder.depth

    def subjects(self) -> Iterator[Subject]:
        """The pretrained encoder, then those that runs changed, one in memory at a time."""
        encoder = self.context.loaded.encoder
        yield Subject(PRETRAINED, None, encoder)
        pretrained = encoder.fingerprint()
        for run in self._runs:
            adapted = run.model(self.context).requires_grad_(False).eval().encoder
            if adapted.inserted is not None or adapted.fingerprint() != pretrained:
                yield Subject(run.record.strategy, run.record.seed, adapted)

    def targets(self, split: SplitName) -> NDArray[Any]:
        """Class numbers or scores, [N]."""
        return self.task.targets(self.context.dataset.splits()[split].labels or ())

    def vectors(
        self,
        subject: Subject,
        split: SplitName,
        pooling: Pool = "mean",
        kept: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        """The states of every block, pooled over a row's tokens: [N, L + 1, H] float32.

        Both texts of a pair count as one sequence; an encoder that reads whole words encodes each
        alone.

        Args:
            subject: the encoder.
            split: the split of the data.
            pooling: how a row's tokens become one vector.
            kept: the rows to encode, from 0; all if None.

        Raises:
            ConfigError: if `pooling` is `cls` and the encoder has no first token that stands for
                the row.
        """
        from totune.encoders.mixing import View
        from totune.features import compute
        from totune.inputs.encoded import EncodingOptions, frame

        encoder, context = subject.encoder, self.context
        examples = context.dataset.splits()[split]
        if kept is not None:
            examples = examples.take(kept)
        separate = encoder.reads_words and examples.pairs is not None
        if pooling == "cls" and encoder.reads_words:
            raise ConfigError(
                f"pooling=cls: an encoder of type {encoder.kind} has no token that stands for the "
                "whole text. Use pooling=mean or pooling=max."
            )
        options = EncodingOptions("separate" if separate else "joint")
        pieces = frame(examples, context.loaded.tokenizer, context.max_length, options).pieces
        view = View(tuple(range(encoder.depth + 1)), pooling)
        name = f"blocks 0..{encoder.depth} of {split}, {subject.label}"
        features = context.cache.features(encoder, pieces, view, context.precision, name)
        if features is None:
            features = compute(encoder, pieces, view, context.precision == "bf16")
        rows = features.rows(np.arange(len(pieces))).float()  # [N or 2 N, L + 1, H]
        vectors: NDArray[np.float32] = rows.numpy()
        return join_pairs(vectors, pieces.lengths, pooling) if separate else vectors


def finite_vectors(
    states: HiddenStates,
    subject: Subject,
    split: SplitName,
    pooling: Pool,
    kept: NDArray[np.int64],
) -> NDArray[np.float32]:
    """`HiddenStates.vectors` of some rows, [rows kept, L + 1, H].

    Raises:
        DataError: if one is NaN or infinite; names block, subject and row.
    """
    vectors = states.vectors(subject, split, pooling, kept)
    bad = np.asarray(~np.isfinite(vectors).all(axis=2))  # [rows kept, L + 1]
    if bad.any():
        block = int(np.argmax(bad.any(axis=0)))
        row = kept[int(np.argmax(bad[:, block]))] + 1
        raise DataError(
            f"The states of block {block} ({block_name(block)}) of {subject} hold NaN or "
            f"infinity in {int(bad[:, block].sum()):,} of {len(kept):,} rows of {split}, first in "
            f"row {row:,} (counted from 1). Compute them with precision=fp32; if they stay so, "
            "the weights are broken: train that run again."
        )
    return vectors


def block_name(block: int) -> str:
    """What block 0, 1, ... of an encoder is called: "embeddings", "layer 1"."""
    return f"layer {block}" if block else "embeddings"


def join_pairs(
    vectors: NDArray[np.float32], lengths: NDArray[np.int64], pooling: Pool
) -> NDArray[np.float32]:
    """One vector per pair, as if the tokens of its two texts had been pooled together.

    Args:
        vectors: of first and second texts in turn, [2 N, L + 1, H].
        lengths: tokens of each text, [2 N].
        pooling: how the tokens of each text were pooled.
    """
    first, second = vectors[::2], vectors[1::2]
    if pooling == "max":
        return np.asarray(np.maximum(first, second))
    share = (lengths[::2] / (lengths[::2] + lengths[1::2]))[:, None, None].astype(np.float32)
    return np.asarray(share * first + (1 - share) * second)


def check_varied(targets: NDArray[Any], task: "Task", split: str) -> None:
    """Refuses labels that leave nothing to predict.

    Raises:
        DataError: if all rows have one label, or each class occurs once.
    """
    values, counts = np.unique(targets, return_counts=True)
    rows = f"The {len(targets):,} rows of {split} that can be used"
    if len(values) < 2:
        label = repr(task.decode(values)[0]) if len(values) else "none"
        raise DataError(
            f"{rows} have one label only: {label}. What separates labels needs two of them. Use "
            "data or a split with more, or a larger fraction of it."
        )
    if task.name != "regression" and counts.max() < 2:
        raise DataError(
            f"{rows} have {len(values):,} labels, each once, so none can be learnt from other "
            "rows that have it. Use more rows, or task=regression if labels are scores."
        )


def sample_rows(
    targets: NDArray[Any], task: "Task", most: int, seed: int
) -> tuple[NDArray[np.int64], int]:
    """Rows to use, in order, and how many were left out because training has no such label.

    Args:
        targets: of all rows, [N].
        task: the task they belong to.
        most: the largest number of rows, drawn at random.
        seed: seed of the draw.
    """
    known = np.flatnonzero(task.known(targets))
    drawn = np.random.default_rng([seed, len(targets)]).permutation(known)[:most]
    return np.sort(drawn), len(targets) - len(known)


def warn_of_missing_classes(
    train: NDArray[Any], dev: NDArray[Any], task: "Task", progress: Progress
) -> None:
    """Warns of classes that train or dev has no row of.

    Args:
        train: targets of the rows that are trained on.
        dev: targets of the rows that are scored.
        task: the task they belong to.
        progress: receives the warnings.
    """
    if task.name == "regression":
        return
    every, unseen = np.arange(task.outputs), int((~task.known(dev)).sum())
    for name, targets in (("train, as drawn,", train), ("dev", dev)):
        missing = np.setdiff1d(every, targets)
        if len(missing):
            labels = ", ".join(repr(label) for label in task.decode(missing))
            progress.warn(f"{name} has no row of {labels}: how well it is predicted is unknown.")
    if unseen:
        progress.warn(
            f"{unseen:,} of {len(dev):,} rows of dev have a label that no row of train has; they "
            "count as wrong, as in a study."
        )
