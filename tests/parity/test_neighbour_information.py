"""Against scikit-learn's estimators of one feature, which are in nats."""

import math

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from totune.information import NearestNeighbours

ROWS = 400


def seeded(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def of_labels(x: np.ndarray, labels: np.ndarray, k: int) -> tuple[float, float]:
    """Ours and scikit-learn's, in nats."""
    ours = NearestNeighbours(n_neighbors=k).with_labels(x, labels)
    (theirs,) = mutual_info_classif(x[:, None], labels, n_neighbors=k, random_state=0)
    return ours * math.log(2), theirs


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("strength", [0.0, 0.5, 3.0])
def test_labels(k: int, strength: float):
    rng = seeded(1)
    labels = rng.integers(0, 3, ROWS)
    ours, theirs = of_labels(rng.normal(size=ROWS) + strength * labels, labels, k)
    assert ours == pytest.approx(theirs, rel=0, abs=1e-9)


def test_rare_and_single_labels():
    rng = seeded(2)
    labels = np.array([0] * 200 + [1] * 196 + [2] * 3 + [3])
    ours, theirs = of_labels(rng.normal(size=ROWS) + labels, labels, 5)
    assert theirs > 0.1
    assert ours == pytest.approx(theirs, rel=0, abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("strength", [0.0, 0.5, 3.0])
def test_numbers(k: int, strength: float):
    rng = seeded(3)
    x = rng.normal(size=ROWS)
    y = 5 + 40 * (strength * x**2 + rng.normal(size=ROWS))
    ours = NearestNeighbours(n_neighbors=k).with_numbers(x, y) * math.log(2)
    (theirs,) = mutual_info_regression(x[:, None], y, n_neighbors=k, random_state=0)
    assert ours == pytest.approx(theirs, rel=0, abs=1e-9)
