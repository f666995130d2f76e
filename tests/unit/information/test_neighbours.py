import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from totune.errors import ConfigError, DataError
from totune.information import NearestNeighbours, label_entropy

ESTIMATOR = NearestNeighbours()


def clusters(n: int = 600, distance: float = 12.0) -> tuple[np.ndarray, list[str]]:
    """Rows [n, 8] around four corners of a square, and the corners' names."""
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 4, n)
    x = rng.normal(size=(n, 8))
    x[:, 2] += distance * (corner % 2)
    x[:, 5] += distance * (corner // 2)
    return x, ["abcd"[k] for k in corner]


def rotation(d: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]


def test_all_components_together_tell_what_one_does_not():
    x, labels = clusters()
    assert ESTIMATOR.with_labels(x, labels) == pytest.approx(label_entropy(labels), abs=0.01)
    for column in (2, 5):
        assert ESTIMATOR.with_labels(x[:, column], labels) == pytest.approx(1, abs=0.1)


def test_information_of_two_normal_classes():
    # I = H(X) - H(X | Y), the first by integration, for classes at -1 and +1.
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 4000)
    x = rng.normal(size=4000) + 2 * labels - 1
    grid = np.linspace(-8, 8, 4001)
    density = (norm.pdf(grid, -1) + norm.pdf(grid, 1)) / 2
    exact = -trapezoid(density * np.log2(density), grid) - norm.entropy() / math.log(2)
    assert ESTIMATOR.with_labels(x, labels) == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
def test_information_of_correlated_normals(correlation: float):
    rng = np.random.default_rng(3)
    x, noise = rng.normal(size=(2, 3000))
    y = correlation * x + math.sqrt(1 - correlation**2) * noise
    exact = -0.5 * math.log2(1 - correlation**2)
    assert ESTIMATOR.with_numbers(x, y) == pytest.approx(exact, abs=0.05)


def test_numbers_told_by_several_components_together():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2000, 3))
    y = x.sum(axis=1) + rng.normal(size=2000)  # variance 3 of x, 1 of noise: 1 bit
    assert ESTIMATOR.with_numbers(x, y) == pytest.approx(1.0, abs=0.15)
    assert ESTIMATOR.with_numbers(x[:, 0], y) < 0.4


def test_names_of_labels_do_not_matter():
    x, labels = clusters(distance=2.0)
    renamed = ["dbca".index(label) * 10 for label in labels]
    found = ESTIMATOR.with_labels(x, renamed)
    assert found == pytest.approx(ESTIMATOR.with_labels(x, labels), abs=1e-12)


def test_rotation_size_place_and_constant_columns_do_not_matter():
    x, labels = clusters(distance=2.0)
    moved = np.hstack([30 * x @ rotation(8) + 5, np.full((len(x), 4), 7.0)])
    found = ESTIMATOR.with_labels(moved, labels)
    assert found == pytest.approx(ESTIMATOR.with_labels(x, labels), abs=1e-6)
    assert found > 0.3


def test_constant_or_independent_x_tells_next_to_nothing():
    x, labels = clusters()
    assert ESTIMATOR.with_labels(np.ones((len(x), 3)), labels) < 0.05
    shuffled = np.random.default_rng(5).permutation(labels)
    assert ESTIMATOR.with_labels(x, shuffled) < 0.05
    assert ESTIMATOR.with_numbers(x, np.ones(len(x))) < 0.05


def test_one_label_tells_nothing():
    x, _ = clusters()
    assert ESTIMATOR.with_labels(x, ["a"] * len(x)) == pytest.approx(0, abs=1e-12)


def test_discrete_x_is_near_the_exact_table():
    rng = np.random.default_rng(6)
    bit = rng.integers(0, 2, 2000)
    x = np.column_stack([bit, rng.integers(0, 2, 2000)])
    flipped = bit ^ (rng.random(2000) < 0.1)  # I = 1 - H(0.1)
    assert ESTIMATOR.with_labels(x, flipped) == pytest.approx(0.531, abs=0.08)


def test_a_seed_decides_the_noise():
    labels = np.arange(200) % 3
    x = np.arange(200) % 20 * 0.1 + (labels == 1)
    first, again, other = (NearestNeighbours(seed=s).with_labels(x, labels) for s in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.eye(3), ["a", "b", "c"], "Each of the 3 labels occurs once"),
        (np.eye(3), ["a", "b"], "x has 3 rows and y 2"),
        (np.array([[0.0], [np.nan]]), ["a", "a"], "nan in row 2, column 1"),
        (np.eye(2), [0.0, np.nan], "labels: row 2"),
    ],
)
def test_labels_that_cannot_be_used(x: np.ndarray, y: Any, message: str):
    with pytest.raises(DataError, match=message):
        ESTIMATOR.with_labels(x, y)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.eye(3), [1.0, 2.0, 3.0], "3 observations are too few for n_neighbors=3: at least 4"),
        (np.eye(5), [1.0, 2.0, 3.0, 4.0], "x has 5 rows and y 4"),
        (np.eye(5), ["a"] * 5, "y must hold numbers"),
    ],
)
def test_numbers_that_cannot_be_used(x: np.ndarray, y: Any, message: str):
    with pytest.raises(DataError, match=message):
        ESTIMATOR.with_numbers(x, y)


def test_all_faults_of_options_are_told():
    with pytest.raises(ConfigError) as caught:
        NearestNeighbours(n_components=0, n_neighbors=0, seed=-1)
    assert len(caught.value.faults) == 3
