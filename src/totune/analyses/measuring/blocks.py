"""What analyses block by block share: names, checked vectors and labels, values over seeds."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.analyses.materials.states import Pool, SplitName, States, Subject
from totune.errors import DataError
from totune.progress import Progress
from totune.tasks.base import Task
from totune.tasks.regression import Regression

Rows = Sequence[Mapping[str, Any]]

POOLED: dict[Pool, str] = {
    "mean": "averaged over tokens",
    "max": "the largest over tokens",
    "cls": "of the first token",
}
PRETRAINED = "pretrained"  # the label of the encoder that nothing has adapted


def block_name(block: int) -> str:
    """What block 0, 1, ... of an encoder is called: "embeddings", "layer 1"."""
    return f"layer {block}" if block else "embeddings"


def told_block(block: int, depth: int) -> str:
    """A block in a sentence: "the embedding layer", "layer 5 of 12", "the top layer"."""
    if not block:
        return "the embedding layer"
    return "the top layer" if block == depth else f"layer {block} of {depth}"


def told_blocks(blocks: Sequence[int]) -> str:
    """Blocks in a sentence: "the embeddings", "layers 1–3, 7", in their order."""
    layers = [block for block in sorted(blocks) if block]
    runs = [[block for _, block in run] for _, run in groupby(enumerate(layers), _offset)]
    spans = [f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    parts = ["the embeddings"] if 0 in blocks else []
    if layers:
        parts.append(f"layer{'s' if len(layers) > 1 else ''} {', '.join(spans)}")
    return " and ".join(parts)


def _offset(place: tuple[int, int]) -> int:
    """Equal for neighbours in a run of consecutive numbers."""
    return place[1] - place[0]


def told_subject(subject: str) -> str:
    """A subject as a sentence begins, or goes on, with it."""
    return subject if subject == PRETRAINED else f"after {subject}"


def name_of(subject: Subject) -> str:
    """A subject as messages name it: "pretrained", "fine-tuning, seed 1"."""
    return subject.label if subject.seed is None else f"{subject.label}, seed {subject.seed}"


def checked_vectors(
    states: States, subject: Subject, split: SplitName, pooling: Pool, kept: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Pooled states of every block for some rows of a split: [rows kept, L + 1, H].

    Args:
        states: what they are read from.
        subject: whose they are.
        split: of the data.
        pooling: over tokens.
        kept: which rows, from 0.

    Raises:
        DataError: if one is NaN or infinite; names block, subject and row.
    """
    vectors: NDArray[np.float32] = states.vectors(subject, split, pooling, kept)
    bad = np.asarray(~np.isfinite(vectors).all(axis=2))  # [rows kept, L + 1]
    if bad.any():
        block = int(np.argmax(bad.any(axis=0)))
        row = kept[int(np.argmax(bad[:, block]))] + 1
        raise DataError(
            f"The states of block {block} ({block_name(block)}) of {name_of(subject)} hold NaN or "
            f"infinity in {int(bad[:, block].sum()):,} of {len(kept):,} rows of {split}, first in "
            f"row {row:,} (counted from 1). Compute them with precision=fp32; if they stay so, "
            "the weights are broken: train that run again."
        )
    return vectors


def check_varied(targets: NDArray[Any], task: Task, split: str) -> None:
    """Refuses labels that leave nothing to tell.

    Raises:
        DataError: if all rows have one label, or each class occurs once.
    """
    values, counts = np.unique(targets, return_counts=True)
    rows = f"The {len(targets):,} rows of {split} that can be used"
    if len(values) < 2:
        told = repr(task.decode(values)[0]) if len(values) else "none"
        raise DataError(
            f"{rows} have one label only: {told}. What tells labels apart needs two of them. Use "
            "data or a split with more, or a larger fraction of it."
        )
    if not isinstance(task, Regression) and counts.max() < 2:
        raise DataError(
            f"{rows} have {len(values):,} labels, each once, so no label can be told by what its "
            "rows share. Use more rows, or `task='regression'` if labels are scores."
        )


def sampled_rows(
    targets: NDArray[Any], task: Task, most: int, seed: int
) -> tuple[NDArray[np.int64], int]:
    """Rows to use, in order, and how many were left out because training has no such label.

    Args:
        targets: of all rows [N].
        task: what they are of.
        most: how many rows are kept, drawn at random.
        seed: of the draw.
    """
    known = np.flatnonzero(task.known(targets))
    drawn = np.random.default_rng([seed, len(targets)]).permutation(known)[:most]
    return np.sort(drawn), len(targets) - len(known)


def tell_missing(train: NDArray[Any], dev: NDArray[Any], task: Task, progress: Progress) -> None:
    """Warns of classes that train or dev has no row of.

    Args:
        train: targets of the rows that are trained on.
        dev: of the rows that are scored.
        task: what they are of.
        progress: warned.
    """
    if isinstance(task, Regression):
        return
    every, unseen = np.arange(task.outputs), int((~task.known(dev)).sum())
    for name, targets in (("train, as drawn,", train), ("dev", dev)):
        missing = np.setdiff1d(every, targets)
        if len(missing):
            labels = ", ".join(repr(label) for label in task.decode(missing))
            progress.warn(f"{name} has no row of {labels}: how well it is told is not measured.")
    if unseen:
        progress.warn(
            f"{unseen:,} of {len(dev):,} rows of dev have a label that no row of train has; they "
            "count as wrong, as in a study."
        )


def subjects_of(rows: Rows) -> list[str]:
    """The labels of subjects in order of appearance."""
    return list(dict.fromkeys(row["subject"] for row in rows if row["subject"] is not None))


def only(rows: Rows, key: str, value: Any) -> Rows:
    """The rows that have this value."""
    return [row for row in rows if row[key] == value]


def values_by_block(rows: Rows, key: str) -> NDArray[np.float64]:
    """One value per seed and block, [seeds, L + 1], of rows of one subject."""
    seeds = dict.fromkeys(row["seed"] for row in rows)
    return np.array([[row[key] for row in rows if row["seed"] == seed] for seed in seeds])


def spread_over_seeds(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Sample deviation of values [seeds, L + 1] over seeds, [L + 1]; None for one seed."""
    return np.asarray(values.std(axis=0, ddof=1)) if len(values) > 1 else None
