"""Splits: the ones a source lacks are drawn from train, stratified, by a seed; shares of them.

Where documents are known, whole ones are drawn instead, for sentences of one document are alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from totune.data.documents import (
    MIN_DOCUMENTS,
    can_be_drawn,
    draw_documents,
    share_of_documents,
)
from totune.data.examples import Examples, Label, SplitName, TaskName
from totune.data.targets import classes_of
from totune.errors import ConfigError, DataError
from totune.text import counted

DEV_SHARE = 0.1
TEST_SHARE = 0.1
QUANTILE_BINS = 10  # strata of a regression's labels
MIN_ROWS = 10  # fewer cannot be split into train, dev and test
_SPLIT_STREAM, _FRACTION_STREAM = 1, 2  # keep the two draws of one seed apart


@dataclass(frozen=True)
class Splits:
    """Three splits, and how the missing ones were made."""

    parts: Mapping[SplitName, Examples]
    notes: tuple[str, ...]
    made: tuple[SplitName, ...] = ()


def complete(
    parts: Mapping[SplitName, Examples],
    task: TaskName,
    seed: int,
    source: str,
    whole: frozenset[int] | None = None,
) -> Splits:
    """Draws a dev and a test split from train where they are missing, 10% of it each.

    Args:
        parts: the splits there are; train must be one.
        task: strata are the classes, for regression the tenths of the labels' distribution, for
            tagging whether any word is tagged. Whole documents are not stratified.
        seed: fixes the draw. A class with fewer than three rows stays in train whole.
        source: named in messages.
        whole: rows of train that stand for themselves, the others being parts of them; only such
            rows can be held out, and their parts leave train with them. None where all do.

    Raises:
        DataError: train is too small to be split.
    """
    train = parts["train"]
    shares: dict[SplitName, float] = {"dev": DEV_SHARE, "test": TEST_SHARE}
    missing: list[SplitName] = [name for name in shares if name not in parts]
    if not missing:
        return Splits(parts, ())
    if len(train) < MIN_ROWS:
        raise DataError(
            f"{source} has {counted(len(train), 'usable row')}; at least {MIN_ROWS} are needed to "
            f"make the {' and '.join(missing)} split. Add rows, or give train, dev and test files."
        )
    rows = np.arange(len(train))
    eligible = np.isin(rows, sorted(rows if whole is None else whole))
    by_documents = can_be_drawn(train.documents, eligible)
    if whole is not None and not by_documents:
        raise _too_few_trees(source, missing)
    drawn = _draw(train, eligible, task, [shares[name] for name in missing], seed)
    made = dict(parts)
    for name, chosen in zip(missing, drawn, strict=True):
        made[name] = train.take(np.sort(chosen[eligible[chosen]]))
    made["train"] = train.take(np.setdiff1d(rows, np.concatenate(drawn)))
    sizes = " and ".join(f"{name} ({len(made[name]):,} rows)" for name in missing)
    how = _how(task) if by_documents else "stratified"
    note = f"{sizes} drawn from train ({how}, seed {seed}); {len(made['train']):,} rows stay."
    return Splits(made, (note[0].upper() + note[1:],), tuple(missing))


def shrink(splits: Splits, task: TaskName, fraction: float, seed: int) -> Splits:
    """A share of the training rows, stratified; every class keeps a row where there is room.

    Where documents are known the share is made of whole ones.

    Dev and test stay whole: they cost little, and what a comparison can tell hangs on them.

    Raises:
        ConfigError: `fraction` is not above 0 and at most 1.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    if fraction == 1:
        return splits
    whole = splits.parts["train"]
    kept = _share(whole, task, fraction, seed)
    how = _how(task) if can_be_drawn(whole.documents) else "stratified"
    note = (
        f"Only {fraction:.3g} of the train rows are used ({how}, seed {seed}): "
        f"{len(kept):,} of {len(whole):,}."
    )
    return Splits({**splits.parts, "train": kept}, (*splits.notes, note), splits.made)


def strata(labels: Sequence[Label], task: TaskName) -> np.ndarray:
    """The stratum of each row, [N].

    It is its class, or the tenth of the distribution its score is in, or whether a word is tagged.
    """
    if task == "tagging":
        return np.array([int(set(classes_of(label)) != {"O"}) for label in labels])
    if task == "classification":
        return np.unique([str(label) for label in labels], return_inverse=True)[1]
    scores = np.asarray(labels, dtype=float)
    edges = np.quantile(scores, np.linspace(0, 1, QUANTILE_BINS + 1)[1:-1])
    return np.searchsorted(edges, scores, side="right")


def _draw(
    train: Examples, eligible: np.ndarray, task: TaskName, shares: Sequence[float], seed: int
) -> list[np.ndarray]:
    """Disjoint sets of rows that hold a share of the eligible rows each."""
    rng = np.random.default_rng([seed, _SPLIT_STREAM])
    wanted = [max(1, round(share * int(eligible.sum()))) for share in shares]
    if can_be_drawn(train.documents, eligible):
        return draw_documents(train.documents or (), eligible, wanted, rng)
    ends = np.cumsum(wanted)
    return np.split(_spread(train, task, rng)[: ends[-1]], ends[:-1])


def _how(task: TaskName) -> str:
    return "whole documents" if task == "tagging" else "whole sentences with their phrases"


def _too_few_trees(source: str, missing: Sequence[SplitName]) -> DataError:
    return DataError(
        f"{source} has fewer than {MIN_DOCUMENTS} usable sentences; at least {MIN_DOCUMENTS} are "
        f"needed to make the {' and '.join(missing)} split. Give train, dev and test files."
    )


def _share(split: Examples, task: TaskName, fraction: float, seed: int) -> Examples:
    rng = np.random.default_rng([seed, _FRACTION_STREAM])
    if can_be_drawn(split.documents):
        return split.take(share_of_documents(split.documents or (), fraction, rng))
    ranks, sizes, _ = _ranks(split, task, rng)
    order = np.argsort(ranks / sizes, kind="stable")
    count = max(1, round(fraction * len(split)))
    return split.take(np.sort(order[:count]))


def _spread(split: Examples, task: TaskName, rng: np.random.Generator) -> np.ndarray:
    """Row numbers [N] in an order whose every stretch holds the strata in proportion.

    A row's place is its random rank within its stratum over the stratum's size, jittered by less
    than a rank so that small strata get their fair chance; strata of one or two rows come last.
    """
    ranks, sizes, jitter = _ranks(split, task, rng)
    place = (ranks + jitter) / sizes + (sizes < 3)
    return np.argsort(place, kind="stable")


def _ranks(
    split: Examples, task: TaskName, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each row its random rank within its stratum, the stratum's size, and its jitter; [N]."""
    of_row = strata(split.labels or (), task)
    ranks = np.empty(len(of_row))
    jitter = np.empty(len(of_row))
    sizes = np.bincount(of_row)[of_row]
    for stratum in np.unique(of_row):
        members = np.flatnonzero(of_row == stratum)
        ranks[members] = rng.permutation(len(members))
        jitter[members] = rng.random()
    return ranks, sizes, jitter
