"""Splits: the ones a source lacks are drawn from train, stratified, by a seed; shares of them.

Where documents are known, whole ones are drawn instead, for sentences of one document are alike.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from totune.data.examples import Examples, Label, SplitName, TaskName, classes_of
from totune.data.label_sets import rarest_labels
from totune.data.tables import Remarks
from totune.errors import ConfigError, DataError
from totune.registry import out_of_range
from totune.text import counted

DEV_SHARE = 0.1
TEST_SHARE = 0.1
QUANTILE_BINS = 10  # strata of a regression's labels
MIN_ROWS = 10  # fewer cannot be split into train, dev and test
MIN_DOCUMENTS = 10  # fewer are not drawn whole: one might be half of the data
_SPLIT_STREAM, _FRACTION_STREAM = 1, 2  # keep the two draws of one seed apart


def complete(
    parts: Mapping[SplitName, Examples],
    task: TaskName,
    seed: int,
    source: str,
    remarks: Remarks,
    test_share: float = TEST_SHARE,
) -> Mapping[SplitName, Examples]:
    """Draws a dev and a test split from train where they are missing, 10% of it each.

    Args:
        parts: the splits there are; train must be one. Where rows of it are parts of others, only
            whole ones can be held out, and their parts leave train with them.
        task: strata are the classes, for regression the tenths of the labels' distribution, for
            tagging whether any word is tagged, and for rows of several labels the rarest of them.
            Whole documents are not stratified.
        seed: fixes the draw. A class with fewer than three rows stays in train whole.
        source: named in messages.
        remarks: is told what was drawn.
        test_share: share of the rows that a drawn test split gets.

    Raises:
        DataError: train is too small to be split, or has too few groups.
    """
    train = parts["train"]
    shares: dict[SplitName, float] = {"dev": DEV_SHARE, "test": test_share}
    missing: list[SplitName] = [name for name in shares if name not in parts]
    if not missing:
        return parts
    if len(train) < MIN_ROWS:
        raise DataError(
            f"{source} has {counted(len(train), 'usable row')}; at least {MIN_ROWS} are needed to "
            f"make the {' and '.join(missing)} split. Add rows, or give train, dev and test files."
        )
    rows = np.arange(len(train))
    eligible = eligible_rows(train)
    units = drawn_whole(train, eligible)
    if train.whole is not None and units is None:
        raise _too_few_trees(source, missing)
    check_groups(train, 1 + len(missing), f"train and the {' and '.join(missing)} split", source)
    drawn = _draw(train, eligible, task, [shares[name] for name in missing], seed)
    made = dict(parts)
    for name, chosen in zip(missing, drawn, strict=True):
        made[name] = train.take(np.sort(chosen[eligible[chosen]]))
    made["train"] = train.take(np.setdiff1d(rows, np.concatenate(drawn)))
    sizes = " and ".join(f"{name} ({len(made[name]):,} rows)" for name in missing)
    how = _stratified(task) if units is None else _how(train, task)
    note = f"{sizes} drawn from train ({how}, seed {seed}); {len(made['train']):,} rows stay."
    remarks.notes.append(note[0].upper() + note[1:])
    return made


def shrink(
    parts: Mapping[SplitName, Examples],
    task: TaskName,
    fraction: float,
    seed: int,
    remarks: Remarks | None = None,
) -> Mapping[SplitName, Examples]:
    """The splits with a share of the training rows; every class keeps a row where there is room.

    The share is stratified; where documents are known, it is made of whole ones.

    Dev and test stay whole: they cost little, and what a comparison can tell hangs on them.

    Raises:
        ConfigError: `fraction` is not above 0 and at most 1.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(out_of_range("fraction", fraction, "above 0 and at most 1"))
    if fraction == 1:
        return parts
    whole = parts["train"]
    kept = _share(whole, task, fraction, seed)
    how = _stratified(task) if drawn_whole(whole) is None else _how(whole, task)
    if remarks is not None:
        remarks.notes.append(
            f"Only {fraction:.3g} of the train rows are used ({how}, seed {seed}): "
            f"{len(kept):,} of {len(whole):,}."
        )
    return {**parts, "train": kept}


def strata(labels: Sequence[Label], task: TaskName, bins: int = QUANTILE_BINS) -> np.ndarray:
    """The stratum of each row, [N].

    It is its class, or the rarest of its labels, or the quantile (of `bins`) that its score is in,
    or whether a word is tagged.
    """
    if task == "multi-label":
        return rarest_labels(labels)
    if task == "tagging":
        return np.array([int(set(classes_of(label)) != {"O"}) for label in labels])
    if task == "classification":
        return np.unique([str(label) for label in labels], return_inverse=True)[1]
    scores = np.asarray(labels, dtype=float)
    edges = np.quantile(scores, np.linspace(0, 1, bins + 1)[1:-1])
    return np.searchsorted(edges, scores, side="right")


def _draw(
    train: Examples, eligible: np.ndarray, task: TaskName, shares: Sequence[float], seed: int
) -> list[np.ndarray]:
    """Disjoint sets of rows that hold a share of the eligible rows each."""
    rng = np.random.default_rng([seed, _SPLIT_STREAM])
    wanted = [max(1, round(share * int(eligible.sum()))) for share in shares]
    units = drawn_whole(train, eligible)
    if units is not None:
        return draw_documents(units, eligible, wanted, rng)
    ends = np.cumsum(wanted)
    return np.split(_spread(train, task, rng)[: ends[-1]], ends[:-1])


def draw_dev(train: Examples, task: TaskName, seed: int) -> np.ndarray:
    """The rows, ascending, of a dev split drawn from `train`, 10% of it."""
    eligible = eligible_rows(train)
    [drawn] = _draw(train, eligible, task, [DEV_SHARE], seed)
    return np.sort(drawn[eligible[drawn]])


def eligible_rows(train: Examples) -> np.ndarray:
    """Which rows can be held out, [N] bool: all but those that are parts of others."""
    return np.ones(len(train), bool) if train.whole is None else np.array(train.whole)


def drawn_whole(split: Examples, eligible: np.ndarray | None = None) -> Sequence[int] | None:
    """What each row is drawn with, [N]: its group, or its document where there are enough of them.

    None where rows are drawn one by one.
    """
    if split.groups is not None:
        return split.groups
    return split.documents if can_be_drawn(split.documents, eligible) else None


def check_groups(split: Examples, least: int, purpose: str, source: str) -> None:
    """Refuses groups that are too few to be kept together.

    Args:
        split: the rows.
        least: how many groups there must be.
        purpose: what they are for, such as "5 folds".
        source: named in the message.

    Raises:
        DataError: there are fewer groups.
    """
    found = len(set(split.groups)) if split.groups is not None else least
    if found < least:
        raise DataError(
            f"{source}: `group` has {counted(found, 'group')}, and {purpose} need at least "
            f"{least}, since a group stays together. Name another column with `group`, or leave "
            "it out."
        )


def _how(split: Examples, task: TaskName) -> str:
    if split.groups is not None:
        return "whole groups"
    return "whole documents" if task == "tagging" else "whole sentences with their phrases"


def _stratified(task: TaskName) -> str:
    return "stratified by each row's rarest label" if task == "multi-label" else "stratified"


def _too_few_trees(source: str, missing: Sequence[SplitName]) -> DataError:
    return DataError(
        f"{source} has fewer than {MIN_DOCUMENTS} usable sentences; at least {MIN_DOCUMENTS} are "
        f"needed to make the {' and '.join(missing)} split. Give train, dev and test files."
    )


def _share(split: Examples, task: TaskName, fraction: float, seed: int) -> Examples:
    rng = np.random.default_rng([seed, _FRACTION_STREAM])
    units = drawn_whole(split)
    if units is not None:
        return split.take(share_of_documents(units, fraction, rng))
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


def can_be_drawn(documents: Sequence[int] | None, eligible: np.ndarray | None = None) -> bool:
    """Whether there are enough documents (of eligible rows, [N] bool) for drawing them whole."""
    if documents is None:
        return False
    of_row = np.asarray(documents)
    return len(np.unique(of_row if eligible is None else of_row[eligible])) >= MIN_DOCUMENTS


def draw_documents(
    documents: Sequence[int], eligible: np.ndarray, wanted: Sequence[int], rng: np.random.Generator
) -> list[np.ndarray]:
    """Draws several disjoint sets of whole documents.

    Args:
        documents: of each row, [N].
        eligible: which rows count towards a set's size, [N] bool; a document without one is not
            drawn.
        wanted: the least number of eligible rows of each set. A document of more than the smallest
            of them is drawn only if there is no other.
        rng: fixes the draw.

    Returns:
        The rows of each set, ascending. At least one document is left over.
    """
    of_row = np.unique(np.asarray(documents), return_inverse=True)[1]
    sizes = np.bincount(of_row, weights=eligible)
    late = sizes > min(wanted)
    order = np.argsort(rng.random(len(sizes)) + late, kind="stable")
    left = [int(document) for document in order if sizes[document]]
    sets = []
    for position, least in enumerate(wanted):
        keep = len(wanted) - position  # for the sets that follow, and one that stays
        chosen: list[int] = []
        while len(left) > keep and (not chosen or sizes[chosen].sum() < least):
            chosen.append(left.pop(0))
        sets.append(np.flatnonzero(np.isin(of_row, chosen)))
    return sets


def share_of_documents(
    documents: Sequence[int], share: float, rng: np.random.Generator
) -> np.ndarray:
    """The rows, ascending, of the first documents of a random order that hold a share of them."""
    of_row = np.unique(np.asarray(documents), return_inverse=True)[1]
    sizes = np.bincount(of_row)
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    count = 1 + int(np.argmin(np.abs(reached - share * len(of_row))))
    return np.flatnonzero(np.isin(of_row, order[:count]))
