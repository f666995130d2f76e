"""Cross-validation: every row is held out once per repetition, by a model that has not seen it.

Folds are stratified by class (of scores by quantiles, of tagged words by whether any word is
tagged); groups that a person named, and documents where there are enough, stay together.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from totune.data.audit import name_classes
from totune.data.examples import ALL_ROWS, Examples, Folds, SplitName, TaskName
from totune.data.splits import (
    MIN_ROWS,
    QUANTILE_BINS,
    check_groups,
    draw_dev,
    drawn_whole,
    eligible_rows,
    shrink,
    strata,
)
from totune.data.tables import Remarks
from totune.errors import DataError
from totune.text import counted

USUAL_FOLDS = 5
FEWEST_FOLDS = 3  # that are made unasked: two would train on half of the rows
FEW_ROWS = 2_000  # fewer are cross-validated unasked: 10% of them are too few to test on
_FOLD_STREAM = 3  # keeps these draws apart from others of one seed


def assign(folds: Folds, repetition: int) -> np.ndarray:
    """The fold of each row, from 1; [N]."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    random = int(np.random.SeedSequence(_entropy(folds, repetition, 0)).generate_state(1)[0])
    units = drawn_whole(folds.rows, eligible_rows(folds.rows))
    splitter = (StratifiedKFold if units is None else StratifiedGroupKFold)(
        folds.count, shuffle=True, random_state=random
    )
    found = np.zeros(len(folds.rows), dtype=np.int64)
    with warnings.catch_warnings():
        # Small strata are checked by `make_folds` where they are classes.
        warnings.simplefilter("ignore", UserWarning)
        parts = splitter.split(np.zeros(len(folds.rows)), _strata(folds), units)
        for fold, (_, held_out) in enumerate(parts, start=1):
            found[held_out] = fold
    return found


def rows_of_fold(folds: Folds, repetition: int, fold: int) -> np.ndarray:
    """The numbers of the rows that a fold predicts, ascending."""
    return np.flatnonzero((assign(folds, repetition) == fold) & eligible_rows(folds.rows))


def fold_splits(folds: Folds, repetition: int, fold: int) -> dict[SplitName, Examples]:
    """Train, dev and test of a fold, counted from 1; of `ALL_ROWS` train alone.

    Where the data has no dev split, that of `ALL_ROWS` is empty: nothing is held out.
    """
    nothing = folds.rows.take(())
    if fold == ALL_ROWS:
        return {"train": folds.rows, "dev": folds.dev or nothing, "test": nothing}
    tested = rows_of_fold(folds, repetition, fold)
    trained = np.flatnonzero(assign(folds, repetition) != fold)
    if folds.dev is not None:
        train, dev = folds.rows.take(trained), folds.dev
    else:
        rest = folds.rows.take(trained)
        seed = np.random.SeedSequence(_entropy(folds, repetition, fold)).generate_state(1)[0]
        held_out = draw_dev(rest, folds.task, int(seed))
        dev = rest.take(held_out)
        train = rest.take(np.setdiff1d(np.arange(len(rest)), held_out))
    return {"train": train, "dev": dev, "test": folds.rows.take(tested)}


def row_numbers(folds: Folds, examples: Examples) -> np.ndarray | None:
    """The numbers of rows that have these texts, [N]; None if one is none of the folds'."""
    places = {row: number for number, row in enumerate(folds.rows)}
    found = [places.get(row) for row in examples]
    return None if None in found else np.array(found, dtype=np.int64)


def check_folds(folds: Folds, repetitions: Iterable[int], source: str) -> None:
    """Finds labels that a fold tests and cannot have learnt, before anything is trained.

    Raises:
        DataError: a class is in no row that a fold trains on, as groups may cause.
    """
    if folds.task != "classification":
        return
    for repetition in repetitions:
        for fold in range(1, folds.count + 1):
            parts = fold_splits(folds, repetition, fold)
            known = set(parts["train"].labels or ())
            lost = Counter(label for label in parts["test"].labels or () if label not in known)
            if lost:
                whole = "groups" if folds.rows.groups is not None else "documents"
                raise DataError(
                    f"{source}: fold {fold} of {folds.count} tests rows of "
                    f"{counted(len(lost), 'class')} that it does not train on "
                    f"({name_classes(lost)}), since their {whole} stay together. Use fewer "
                    "`folds`, add rows of other groups, or leave the class out."
                )


def _entropy(folds: Folds, repetition: int, fold: int) -> list[int]:
    return [folds.seed, _FOLD_STREAM, repetition, fold]


def _strata(folds: Folds) -> np.ndarray:
    labels = folds.rows.labels or ()
    if folds.task != "regression":
        return strata(labels, folds.task)
    bins = max(1, min(QUANTILE_BINS, len(folds.rows) // (2 * folds.count)))
    return strata(labels, folds.task, bins)


def make_folds(
    parts: Mapping[SplitName, Examples],
    task: TaskName,
    count: int | None,
    seed: int,
    source: str,
    remarks: Remarks,
    fraction: float = 1.0,
) -> Folds | None:
    """The cross-validation that was asked for, or that suits the data; None for one split.

    Args:
        parts: the splits that the data has.
        task: decides the strata.
        count: folds that were asked for, at least 2; None has them follow from the data: five
            where there is no test split and fewer than 2,000 rows, three or four where a class has
            only so many rows.
        seed: fixes the folds.
        source: of the rows, in messages.
        remarks: is told what was decided.
        fraction: share of the rows that is used.

    Raises:
        DataError: the folds that were asked for cannot be made.
    """
    if count is None and ("test" in parts or len(parts["train"]) >= FEW_ROWS):
        return None
    said = Remarks()
    parts = shrink(parts, task, fraction, seed, said)
    train = parts["train"]
    if count is not None:
        _check_count(parts, task, count, source)
    else:
        count = _suitable(train, task, remarks)
        if count is None:
            return None
    remarks.add(said)
    check_groups(train, count, f"{count} folds", source)
    folds = Folds(train, task, count, seed, parts.get("dev"))
    check_folds(folds, [0], source)
    remarks.notes.append(_note(folds))
    return folds


def _suitable(train: Examples, task: TaskName, remarks: Remarks) -> int | None:
    """How many folds few rows get; None if one split suits them, or else is refused."""
    if len(train) < MIN_ROWS:
        return None
    if train.whole is not None and drawn_whole(train, eligible_rows(train)) is None:
        return None
    rarest = _rarest(train, task)
    if rarest is not None and rarest[1] < FEWEST_FOLDS:
        remarks.notes.append(
            f"Not cross-validated, although there are few rows: the class {rarest[0]!r} has "
            f"{counted(rarest[1], 'row')}, and {FEWEST_FOLDS} folds need {FEWEST_FOLDS}. Without "
            "such classes every row would be tested on."
        )
        return None
    return USUAL_FOLDS if rarest is None else min(USUAL_FOLDS, rarest[1])


def _check_count(
    parts: Mapping[SplitName, Examples], task: TaskName, count: int, source: str
) -> None:
    train = parts["train"]
    if "test" in parts:
        raise DataError(
            f"{source}: there is a test split, so `folds={count}` has nothing to do. Leave it out, "
            "or name the train file alone."
        )
    if len(train) < max(MIN_ROWS, count):
        raise DataError(
            f"{source} has {counted(len(train), 'usable row')}; {count} folds need at least "
            f"{max(MIN_ROWS, count)}. Add rows."
        )
    if train.whole is not None and drawn_whole(train, eligible_rows(train)) is None:
        raise DataError(f"{source} has too few whole sentences to be cross-validated.")
    rarest = _rarest(train, task)
    if rarest is not None and rarest[1] < count:
        least = f"`folds={rarest[1]}`" if rarest[1] > 1 else "one split (`folds=1`)"
        raise DataError(
            f"{source}: {count} folds need {count} rows of every class, and {rarest[0]!r} has "
            f"{rarest[1]}. Use {least}, add rows of it, or leave it out."
        )


def _rarest(train: Examples, task: TaskName) -> tuple[str, int] | None:
    """The class with the fewest rows that can be held out, and how many; None without classes."""
    if task != "classification":
        return None
    held_out = zip(train.labels or (), eligible_rows(train), strict=True)
    counts = Counter(str(label) for label, can in held_out if can)
    return min(counts.items(), key=lambda item: (item[1], item[0]))


def _note(folds: Folds) -> str:
    units = drawn_whole(folds.rows, eligible_rows(folds.rows))
    if folds.rows.groups is not None:
        how = "groups stay together"
    else:
        how = "stratified" if units is None else "documents stay together"
    rows = int(eligible_rows(folds.rows).sum())
    dev = "10% of the others are the dev split" if folds.dev is None else "the dev split is given"
    return (
        f"All {rows:,} rows are predicted by {folds.count}-fold cross-validation ({how}, seed "
        f"{folds.seed}): each fold's rows by a model trained on the others, and {dev}. "
        "`folds=1` draws one test split instead."
    )
