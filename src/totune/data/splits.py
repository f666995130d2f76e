"""Splits: the ones a source lacks are drawn from train, stratified, by a seed; shares of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from totune.data.examples import Examples, Label, SplitName, TaskName
from totune.errors import ConfigError, DataError

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


def complete(parts: Mapping[SplitName, Examples], task: TaskName, seed: int, source: str) -> Splits:
    """Draws a dev and a test split from train where they are missing, 10% of it each.

    Args:
        parts: the splits there are; train must be one.
        task: strata are the classes, or for regression the tenths of the labels' distribution.
        seed: fixes the draw. A class with fewer than three rows stays in train whole.
        source: named in messages.

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
            f"{source} has {len(train)} usable rows; at least {MIN_ROWS} are needed to make the "
            f"{' and '.join(missing)} split. Add rows, or give train, dev and test files."
        )
    order = _spread(train, task, np.random.default_rng([seed, _SPLIT_STREAM]))
    made = dict(parts)
    start = 0
    for name in missing:
        stop = start + max(1, round(shares[name] * len(train)))
        made[name] = train.take(np.sort(order[start:stop]))
        start = stop
    made["train"] = train.take(np.sort(order[start:]))
    sizes = " and ".join(f"{name} ({len(made[name]):,} rows)" for name in missing)
    note = f"{sizes} drawn from train (stratified, seed {seed}); {len(made['train']):,} rows stay."
    return Splits(made, (note[0].upper() + note[1:],), tuple(missing))


def shrink(splits: Splits, task: TaskName, fraction: float, seed: int) -> Splits:
    """A share of the training rows, stratified; every class keeps a row where there is room.

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
    note = (
        f"Only {fraction:.3g} of the train rows are used (stratified, seed {seed}): "
        f"{len(kept):,} of {len(whole):,}."
    )
    return Splits({**splits.parts, "train": kept}, (*splits.notes, note), splits.made)


def strata(labels: Sequence[Label], task: TaskName) -> np.ndarray:
    """The stratum of each row, [N]: its class, or the tenth of the distribution its score is in."""
    if task == "classification":
        return np.unique([str(label) for label in labels], return_inverse=True)[1]
    scores = np.asarray(labels, dtype=float)
    edges = np.quantile(scores, np.linspace(0, 1, QUANTILE_BINS + 1)[1:-1])
    return np.searchsorted(edges, scores, side="right")


def _share(split: Examples, task: TaskName, fraction: float, seed: int) -> Examples:
    rng = np.random.default_rng([seed, _FRACTION_STREAM])
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
