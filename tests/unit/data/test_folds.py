"""Cross-validation: every row tested once, folds that are alike, groups together, clear faults."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_data import write_table

from totune.data.examples import Examples, Folds, TaskName
from totune.data.folds import ALL_ROWS, assign, fold_splits, make_folds, row_numbers, rows_of_fold
from totune.data.sources import load_dataset
from totune.data.tables import Remarks
from totune.errors import DataError


def rows(labels: list[Any], groups: list[int] | None = None) -> Examples:
    texts = tuple(f"text {i}" for i in range(len(labels)))
    numbers = tuple(range(len(labels)))
    return Examples(
        texts, tuple(labels), rows=numbers, groups=None if groups is None else tuple(groups)
    )


def classes(*sizes: int, groups: list[int] | None = None) -> Examples:
    return rows(["abcdef"[at] for at, size in enumerate(sizes) for _ in range(size)], groups)


def folds_of(
    train: Examples, count: int | None, task: TaskName = "classification", **parts: Examples
) -> Folds | None:
    given: Any = {"train": train, **parts}
    return make_folds(given, task, count, 0, "a.csv", Remarks())


def made(train: Examples, count: int = 5, task: TaskName = "classification") -> Folds:
    found = folds_of(train, count, task)
    assert found is not None
    return found


def test_every_row_is_tested_once_by_a_model_that_did_not_see_it() -> None:
    train = classes(30, 20, 10)
    folds = made(train)
    tested = np.concatenate([rows_of_fold(folds, 0, fold) for fold in range(1, 6)])
    assert sorted(tested) == list(range(60))
    for fold in range(1, 6):
        parts = fold_splits(folds, 0, fold)
        assert {name: len(part) for name, part in parts.items()} == {
            "train": 43,
            "dev": 5,
            "test": 12,
        }
        assert Counter(parts["test"].labels) == {"a": 6, "b": 4, "c": 2}
        held = [row for part in parts.values() for row in part.rows]
        assert sorted(held) == list(range(60))
        assert list(parts["test"].rows) == list(rows_of_fold(folds, 0, fold))


def test_repetitions_have_other_folds_and_the_same_ones_again() -> None:
    folds = made(classes(30, 30))
    first = assign(folds, 0)
    assert (first == assign(made(classes(30, 30)), 0)).all()
    assert (first != assign(folds, 1)).any()


def test_all_rows_train_where_nothing_is_held_out() -> None:
    folds = made(classes(10, 10))
    sizes = {name: len(part) for name, part in fold_splits(folds, 0, ALL_ROWS).items()}
    assert sizes == {"train": 20, "dev": 0, "test": 0}


def test_groups_and_documents_stay_together() -> None:
    groups = [number // 4 for number in range(80)]
    for train in (
        classes(40, 40, groups=groups),
        Examples(classes(40, 40).texts, classes(40, 40).labels, documents=tuple(groups)),
    ):
        folds = made(train)
        for fold in range(1, 6):
            parts = fold_splits(folds, 0, fold)
            found = [set(part.groups or part.documents or ()) for part in parts.values()]
            assert all(found)
            assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]


def test_scores_are_stratified_by_quantiles() -> None:
    scores = np.random.default_rng(0).permutation(100).astype(float)
    folds = made(rows(list(scores)), task="regression")
    means = [np.mean(fold_splits(folds, 0, fold)["test"].labels or ()) for fold in range(1, 6)]
    assert np.ptp(means) < 3  # of random folds about 15


def test_a_given_dev_split_is_that_of_every_fold() -> None:
    dev = classes(5, 5)
    folds = folds_of(classes(20, 20), 5, dev=dev)
    assert folds is not None
    parts = fold_splits(folds, 0, 1)
    assert parts["dev"] is dev
    assert len(parts["train"]) == 32
    assert fold_splits(folds, 0, ALL_ROWS)["dev"] is dev


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((30, 30), 5),
        ((30, 4), 4),
        ((30, 3), 3),
        ((30, 2), None),
        ((1000, 1000), None),
        ((5, 4), None),
    ],
)
def test_few_rows_are_cross_validated_unasked(sizes: tuple[int, ...], count: int | None) -> None:
    found = folds_of(classes(*sizes), None)
    assert (found and found.count) == count


def test_data_with_a_test_split_is_not_cross_validated_unasked() -> None:
    assert folds_of(classes(30, 30), None, test=classes(5, 5)) is None


def test_a_rare_class_says_why_there_are_no_folds() -> None:
    remarks = Remarks()
    assert make_folds({"train": classes(30, 2)}, "classification", None, 0, "a", remarks) is None
    assert "the class 'b' has 2 rows, and 3 folds need 3" in remarks.notes[0]


@pytest.mark.parametrize(
    ("train", "more", "told"),
    [
        (classes(30, 3), {}, "5 folds need 5 rows of every class, and 'b' has 3. Use `folds=3`"),
        (classes(30, 1), {}, "and 'b' has 1. Use one split"),
        (classes(4, 4), {}, "8 usable rows; 5 folds need at least 10"),
        (classes(20, 20), {"test": classes(3, 3)}, "there is a test split, so `folds=5`"),
        (classes(20, 20, groups=[0] * 40), {}, "`group` has 1 group, and 5 folds need at least 5"),
        (classes(20, 20, groups=[i % 3 for i in range(40)]), {}, "`group` has 3 groups"),
        (
            classes(40, 6, groups=[*(i % 8 for i in range(40)), *[8] * 6]),
            {},
            r"1 class that it does not train on \('b': 6\), since their groups stay together",
        ),
    ],
)
def test_folds_that_cannot_be_made(train: Examples, more: dict[str, Examples], told: str) -> None:
    with pytest.raises(DataError, match=told):
        folds_of(train, 5, **more)


def test_rows_are_known_by_their_texts() -> None:
    folds = made(classes(10, 10))
    part = folds.rows.take([7, 3])
    numbers = row_numbers(folds, part)
    assert numbers is not None
    assert list(numbers) == [7, 3]
    assert row_numbers(folds, Examples(("elsewhere",))) is None


# Splits that a person names


@pytest.fixture
def table(tmp_path: Path) -> Path:
    header = ("text", "author", "label")
    cells = [(f"some words {i}", f"author {i % 12}", "ab"[i % 7 < 3]) for i in range(120)]
    return write_table(tmp_path / "rows.csv", header, cells)


def test_a_dataset_of_folds_shows_its_first(table: Path) -> None:
    data = load_dataset(table, folds=5)
    assert data.folds is not None
    assert data.test == fold_splits(data.folds, 0, 1)["test"]
    assert any("All 120 rows are predicted by 5-fold" in note for note in data.notes)
    assert data.provenance["test"] == "5 folds, seed 0"
    assert load_dataset(table, folds=4).digest() != data.digest()
    assert load_dataset(table).folds is None
    half = load_dataset(table, folds=5, fraction=0.5)
    assert half.folds is not None
    assert len(half.folds.rows) == 60


def test_a_column_of_groups_is_kept_together_and_not_read_as_text(table: Path) -> None:
    data = load_dataset(table, group="author", folds=3)
    assert data.columns.group == "author"
    assert data.columns.text == "text"
    split = load_dataset(table, group="2")
    authors = [{text.split()[-1] for text in part.texts} for part in split.splits().values()]
    numbers = [{int(one) % 12 for one in part} for part in authors]
    assert not numbers[0] & numbers[1] | numbers[0] & numbers[2]
    with pytest.raises(DataError, match=r"no column 'writer' \(`group`\)"):
        load_dataset(table, group="writer")


def test_a_test_split_of_another_size(table: Path) -> None:
    assert len(load_dataset(table, test_size=0.25).test) == 30


def test_scores_on_dev_leave_train_whole(table: Path) -> None:
    files = {"train": table, "dev": table, "test": table}
    data = load_dataset(files, evaluate_on="dev")
    assert [len(part) for part in data.splits().values()] == [120, 0, 120]
    assert any("the last one is kept. The test split is not read." in note for note in data.notes)
    with pytest.raises(DataError, match="needs a dev split, and there is none"):
        load_dataset(table, evaluate_on="dev")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"test_size": 0.3}, "there is a test split, so `test_size=0.3`"),
        ({"group": "author"}, "no split is drawn, so `group='author'`"),
        ({"folds": 5}, "there is a test split, so `folds=5`"),
    ],
)
def test_what_nobody_draws_is_refused(table: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        load_dataset({"train": table, "dev": table, "test": table}, **settings)
