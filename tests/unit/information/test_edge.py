import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.plug_in import plug_in_information

from totune.errors import ConfigError, DataError
from totune.information import Edge, label_entropy
from totune.information.edge import FLOOR, _kth_distances, _number

ONE_PASS = Edge((1, 0.001), passes=1)
# Distances and sums in another order differ by rounding alone.
ROUNDING = {"rel": 0, "abs": 1e-9}


def states(n: int = 1000, d: int = 12, strength: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Continuous rows [n, d] that tell four equally frequent labels [n]."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(n) % 4)
    means = rng.normal(size=(4, d))
    return rng.normal(size=(n, d)) + strength * means[labels], labels


def bits(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Three bits [n, 3] that tell a label [n] in part."""
    rng = np.random.default_rng(1)
    found = rng.integers(0, 2, (n, 3))
    noise = rng.random(n) < 0.1
    return found.astype(float), (found[:, 0] + found[:, 1]) % 2 ^ noise


@pytest.mark.parametrize("order", [(1, 0, 3, 2), (2, 3, 1, 0), (3, 2, 1, 0)])
def test_names_of_labels_do_not_matter(order: tuple[int, ...]):
    x, labels = states()
    expected = ONE_PASS.estimate(x, labels)
    assert expected > 0.5
    assert ONE_PASS.estimate(x, np.array(order)[labels]) == pytest.approx(expected, **ROUNDING)


def test_distances_between_the_numbers_of_labels_do_not_matter():
    x, labels = states()
    found = ONE_PASS.estimate(x, np.array([-7, 0, 1, 40])[labels])
    assert found == pytest.approx(ONE_PASS.estimate(x, labels), **ROUNDING)


def test_a_small_gamma_keeps_many_labels_apart():
    x, _ = states()
    _, y = Edge().project(x, np.arange(len(x)) % 60)
    assert y.cells(1.0, 0).max() + 1 < 60
    assert [y.cells(0.001, member).max() + 1 for member in range(10)] == [60] * 10


def test_two_labels_may_change_names_in_the_second_pass_too():
    x, labels = states()
    found = Edge().estimate(x, labels > 1)
    assert found > 0.1
    assert Edge().estimate(x, labels <= 1) == pytest.approx(found, **ROUNDING)


@pytest.mark.parametrize("edge", [Edge(), ONE_PASS])
def test_constant_x_tells_nothing_however_often_it_is_repeated(edge: Edge):
    _, labels = states()
    for columns in (1, 2, 9):
        found = edge.estimate(np.full((len(labels), columns), 3.5), labels)
        assert found == pytest.approx(FLOOR, abs=1e-12)


def test_columns_of_zeros_change_nothing_but_the_added_1e_4_of_a_distance():
    x, labels = states()
    padded = [np.hstack([x, np.zeros((len(x), extra))]) for extra in (0, 1, 2, 30)]
    found = [ONE_PASS.estimate(values, labels) for values in padded]
    assert found == pytest.approx([found[0]] * 4, abs=0.02)


def test_units_of_columns_do_not_matter():
    x, labels = states()
    scaled = x * np.logspace(-2, 6, x.shape[1])
    found = Edge().estimate(scaled, labels)
    assert found == pytest.approx(Edge().estimate(x, labels), **ROUNDING)


def test_discrete_x_is_near_the_exact_table():
    x, labels = bits()
    exact = plug_in_information(x, labels)
    assert 0.45 < exact < 0.6
    # Pairs rarer than by chance count as slightly informative, so the estimate lies above.
    found = Edge((0.001, 0.001), passes=1).estimate(x, labels)
    by_hand = _clipped_table(x, labels)
    assert found == pytest.approx(by_hand, **ROUNDING)
    assert exact < found < exact + 0.25


def _clipped_table(x: np.ndarray, labels: np.ndarray) -> float:
    """The estimate by its formula, for a cell per distinct row."""
    rows, n = [tuple(row) for row in x], len(x)
    total = 0.0
    for row, label in set(zip(rows, labels, strict=True)):
        both = sum(r == row and k == label for r, k in zip(rows, labels, strict=True))
        ratio = n * both / (rows.count(row) * int((labels == label).sum()))
        total += both * max(FLOOR, np.log2(ratio))
    return total / n


def test_x_that_is_the_label_tells_all_of_it():
    _, labels = states()
    found = Edge((0.001, 0.001)).estimate(labels, labels)
    assert found == pytest.approx(label_entropy(labels), abs=1e-9)


def test_independent_sides_fall_to_the_floor_in_the_second_pass():
    x, labels = states()
    shuffled = np.random.default_rng(2).permutation(labels)
    assert Edge().estimate(x, shuffled) < 0.01
    assert Edge(passes=1).estimate(x, shuffled) < 0.35 * ONE_PASS.estimate(x, labels)


def test_a_seed_decides_the_estimate():
    x, labels = states()
    found = {seed: Edge(seed=seed).estimate(x, labels) for seed in (1, 2)}
    assert found[1] == Edge(seed=1).estimate(x, labels)
    assert found[1] != found[2]


def test_the_ensemble_is_joined_by_median_or_mean():
    x, labels = states()
    members = ONE_PASS.members(*ONE_PASS.project(x, labels), ONE_PASS.gamma)
    assert ONE_PASS.estimate(x, labels) == np.median(members)
    mean = Edge((1, 0.001), passes=1, ensemble="mean")
    assert mean.estimate(x, labels) == np.mean(members)


def test_the_upper_bound_holds():
    _, labels = states()
    assert Edge((0.001, 0.001), upper_bound=0.5).estimate(labels, labels) == pytest.approx(0.5)


def test_the_least_number_of_rows():
    x, labels = states()
    assert Edge().estimate(x[:20], labels[:20]) > 0
    with pytest.raises(DataError, match="at least 20 observations, and there are 19"):
        Edge().estimate(x[:19], labels[:19])


def test_narrow_types_do_not_overflow():
    x, labels = states()
    narrow = x.astype(np.float16)
    found = Edge().estimate(narrow, labels.astype(np.int8))
    assert found == Edge().estimate(narrow.astype(np.float64), labels)


def test_more_rows_than_are_widened_at_once():
    x, labels = states(n=20_000, d=3)
    found, _ = Edge().project(x.astype(np.float32), labels)
    deviations = x.astype(np.float32).astype(np.float64).std(axis=0)
    unit = np.random.RandomState(3334).normal(size=(3, 3)) / np.sqrt(3)
    np.testing.assert_allclose(found.weights, unit / deviations[:, None], rtol=1e-12)
    np.testing.assert_allclose(found.values, x @ found.weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((30, 2)), np.zeros(29), "x has 30 rows and y 29"),
        (np.zeros((30, 2, 2)), np.zeros(30), r"x must be .* and is \[30, 2, 2\]"),
        (np.zeros((30, 0)), np.zeros(30), r"x must be .* and is \[30, 0\]"),
        ([], [], r"x must be .* and is \[0\]"),
        (np.zeros((30, 2)), ["yes", "no"] * 15, r"y must hold numbers.*numpy\.unique"),
    ],
)
def test_what_cannot_be_estimated(x: Any, y: Any, message: str):
    with pytest.raises(DataError, match=message):
        Edge().estimate(x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named(value: float):
    x, labels = states()
    x[6, 2] = x[700, 0] = value
    place = re.escape(f"2 values that are not finite, the first {value} in row 7, column 3")
    with pytest.raises(DataError, match=place):
        Edge().estimate(x, labels)


def test_all_faults_of_options_are_told():
    options: Any = {
        "gamma": (1.0, 0.0),
        "upper_bound": 0.0,
        "passes": 3,
        "ensemble": "max",
        "seed": -1,
    }
    with pytest.raises(ConfigError) as caught:
        Edge(**options)
    assert [fault.split()[0] for fault in caught.value.faults] == list(options)


@settings(max_examples=50, deadline=None)
@given(
    arrays.arrays(np.float64, st.integers(1, 40), elements=st.integers(-6, 6).map(float)),
    st.data(),
)
def test_distances_to_neighbours(column: np.ndarray, data: st.DataObject):
    k = data.draw(st.integers(1, len(column)))
    drawn = np.arange(len(column))
    expected = np.sort(np.abs(column[:, None] - column), axis=1)[:, k - 1]
    np.testing.assert_array_equal(_kth_distances(column, drawn, k), expected)


@settings(max_examples=50, deadline=None)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.integers(1, 6)),
        elements=st.sampled_from([-(2.0**40), -1.0, 0.0, 1.0, 2.0, 2.0**30, 2.0**45]),
    )
)
def test_cells_are_numbered_by_row(cells: np.ndarray):
    found = _number(cells)
    _, expected = np.unique(cells, axis=0, return_inverse=True)
    assert set(found) == set(range(expected.max() + 1))
    same = found[:, None] == found
    np.testing.assert_array_equal(same, expected.ravel()[:, None] == expected.ravel())
