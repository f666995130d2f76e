from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.data.examples import Examples, Label, SplitName
from totune.data.splits import complete, shrink, strata
from totune.data.tables import Remarks
from totune.errors import ConfigError, DataError


def examples(labels: list[Label]) -> Examples:
    texts = tuple(f"text {i}" for i in range(len(labels)))
    return Examples(texts, tuple(labels), rows=tuple(range(len(labels))))


def classes(*sizes: int) -> Examples:
    return examples([f"class {at}" for at, size in enumerate(sizes) for _ in range(size)])


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6).filter(lambda s: sum(s) >= 10),
    seed=st.integers(0, 2**31),
)
def test_every_row_lands_in_exactly_one_split(sizes: list[int], seed: int) -> None:
    train = classes(*sizes)
    parts = complete({"train": train}, "classification", seed, "a.csv", Remarks())
    rows = [row for split in parts.values() for row in split.rows]
    assert sorted(rows) == list(train.rows)
    assert set(parts["train"].labels or ()) == set(train.labels or ())
    for name in ("dev", "test"):
        assert len(parts[name]) == max(1, round(0.1 * len(train)))  # type: ignore[index]


@given(st.lists(st.integers(3, 80), min_size=2, max_size=5), st.integers(0, 2**31))
def test_classes_keep_their_shares(sizes: list[int], seed: int) -> None:
    train = classes(*sizes)
    if len(train) < 10:
        return
    parts = complete({"train": train}, "classification", seed, "a.csv", Remarks())
    for name in ("dev", "test"):
        counts = Counter(parts[name].labels)  # type: ignore[index]
        for at, size in enumerate(sizes):
            assert abs(counts[f"class {at}"] - 0.1 * size) < 2


def test_a_class_of_one_row_stays_in_train() -> None:
    for seed in range(20):
        parts = complete({"train": classes(50, 1, 2)}, "classification", seed, "a.csv", Remarks())
        counts = Counter(parts["train"].labels)
        assert (counts["class 1"], counts["class 2"]) == (1, 2)


def test_the_seed_decides() -> None:
    def test_rows(seed: int) -> tuple[int, ...]:
        parts = complete({"train": classes(60, 40)}, "classification", seed, "a", Remarks())
        return parts["test"].rows

    assert test_rows(1) == test_rows(1)
    assert test_rows(1) != test_rows(2)


def test_only_what_is_missing_is_made() -> None:
    given_test = classes(3, 3)
    remarks = Remarks()
    parts = {"train": classes(60, 40), "test": given_test}
    made = complete(parts, "classification", 0, "a.csv", remarks)  # type: ignore[arg-type]
    assert made["test"] is given_test
    assert (len(made["train"]), len(made["dev"])) == (90, 10)
    assert remarks.notes == ["Dev (10 rows) drawn from train (stratified, seed 0); 90 rows stay."]


def test_nothing_is_made_of_three_splits() -> None:
    parts: dict[SplitName, Examples] = {s: classes(1, 1) for s in ("train", "dev", "test")}  # type: ignore[misc]
    remarks = Remarks()
    assert complete(parts, "classification", 0, "a.csv", remarks) is parts
    assert remarks == Remarks()


def test_too_few_rows_is_an_error() -> None:
    with pytest.raises(DataError, match=r"a\.csv has 9 usable rows; at least 10"):
        complete({"train": classes(5, 4)}, "classification", 0, "a.csv", Remarks())


def test_regression_is_stratified_by_quantiles() -> None:
    scores: list[Label] = [float(x) for x in np.random.default_rng(0).lognormal(size=1000)]
    parts = complete({"train": examples(scores)}, "regression", 0, "a.csv", Remarks())
    edges = np.quantile(np.asarray(scores, dtype=float), [0.2, 0.4, 0.6, 0.8])
    counts = np.bincount(np.searchsorted(edges, np.asarray(parts["dev"].labels, dtype=float)))
    assert counts.tolist() == pytest.approx([20] * 5, abs=3)


def test_equal_scores_share_a_stratum() -> None:
    assert len(set(strata([1.0] * 50 + [2.0] * 50, "regression").tolist())) == 2


def test_a_fraction_is_stratified_and_said() -> None:
    parts: dict[SplitName, Examples] = {
        "train": classes(900, 99, 1),
        "dev": classes(80, 20),
        "test": classes(80, 20),
    }
    remarks = Remarks()
    small = shrink(parts, "classification", 0.1, 3, remarks)
    counts = Counter(small["train"].labels)
    assert counts == {"class 0": 89, "class 1": 10, "class 2": 1}
    assert (small["dev"], small["test"]) == (parts["dev"], parts["test"])
    assert remarks.notes == [
        "Only 0.1 of the train rows are used (stratified, seed 3): 100 of 1,000."
    ]
    assert shrink(parts, "classification", 0.1, seed=3) == small


@pytest.mark.parametrize("fraction", [0, -0.5, 1.01])
def test_a_fraction_out_of_range_is_an_error(fraction: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        shrink({"train": classes(5, 5)}, "classification", fraction, 0)
