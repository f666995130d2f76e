import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score
from tests.plug_in import plug_in_information

from totune.errors import DataError
from totune.information import label_entropy

observations = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["yes", "no"], 1.0),
        (["yes", "yes"], 0.0),
        ([1, 2, 3, 4, 5, 6, 7, 8], 3.0),
        (["a", "b", "b", "b"], 2 - 0.75 * math.log2(3)),
        (np.array([[0, 1], [0, 1], [1, 1], [1, 0]]), 1.5),
        ([np.array([0, 1]), np.array([1, 0])], 1.0),
        ([1, "1"], 1.0),
    ],
)
def test_entropy(labels: list[object], expected: float):
    assert label_entropy(labels) == pytest.approx(expected, abs=1e-12)


def test_entropy_of_one_label_is_a_positive_zero():
    assert math.copysign(1, label_entropy(["yes"])) == 1


@settings(max_examples=50, deadline=None)
@given(observations)
def test_information_is_scikit_learns(pairs: list[tuple[int, int]]):
    x, y = zip(*pairs, strict=True)
    expected = mutual_info_score(x, y) / math.log(2)
    assert plug_in_information(x, y) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(observations)
def test_information_is_symmetric_and_bounded(pairs: list[tuple[int, int]]):
    x, y = zip(*pairs, strict=True)
    found = plug_in_information(x, y)
    assert found == pytest.approx(plug_in_information(y, x), abs=1e-12)
    assert 0 <= found <= min(label_entropy(x), label_entropy(y)) + 1e-12


def test_a_variable_tells_all_of_itself_and_a_repeated_column_no_more():
    x = np.random.default_rng(0).integers(0, 3, (200, 2))
    y = x.sum(axis=1)
    assert plug_in_information(y, y) == pytest.approx(label_entropy(y))
    repeated = np.hstack([x, x[:, :1], np.ones((200, 1), int)])
    found = plug_in_information(x, y)
    assert plug_in_information(repeated, y) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "labels: there is no row"),
        ([1.0, math.nan], r"labels: row 2 \(counted from 1\) holds NaN"),
        (np.array([[1.0, 2.0], [3.0, 4.0], [math.nan, 1.0]]), "row 3"),
    ],
)
def test_labels_that_cannot_be_counted(labels: list[float], message: str):
    with pytest.raises(DataError, match=message):
        label_entropy(labels)
