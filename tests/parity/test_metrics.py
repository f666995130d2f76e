"""Against scikit-learn and SciPy, on plain arrays and on resampled ones."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from totune.metrics import METRICS

REFERENCES: dict[str, Callable[..., float]] = {
    "accuracy": sk.accuracy_score,
    "macro f1": lambda t, p: sk.f1_score(t, p, average="macro", zero_division=0),
    "binary f1": lambda t, p: sk.f1_score(t, p, zero_division=0),
    "matthews": sk.matthews_corrcoef,
    "pearson": lambda t, p: stats.pearsonr(t, p).statistic,
    "spearman": lambda t, p: stats.spearmanr(t, p).statistic,
    "mse": sk.mean_squared_error,
}


def class_data(classes: int, seed: int, unseen: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, classes, 120)
    right = rng.random((3, 120)) < 0.6
    predictions = np.where(right, targets, rng.integers(0, classes, (3, 120)))
    if unseen:
        targets[:7] = -100
    return targets, predictions


def number_data(seed: int, tied: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.normal(3, 1, 120)
    predictions = targets + rng.normal(0, 1, (3, 120))
    return (np.round(targets), np.round(predictions)) if tied else (targets, predictions)


CASES = [
    *((name, name, class_data(c, c)) for name in ("accuracy", "matthews") for c in (2, 5)),
    *((name, name, class_data(4, 7, unseen=True)) for name in ("accuracy", "matthews")),
    ("f1", "binary f1", class_data(2, 2)),
    ("f1", "macro f1", class_data(3, 3)),
    ("f1", "macro f1", class_data(9, 4)),
    ("f1", "macro f1", class_data(4, 5, unseen=True)),
    *((name, name, number_data(1)) for name in ("pearson", "spearman", "mse")),
    *((name, name, number_data(2, tied=True)) for name in ("pearson", "spearman", "mse")),
]


@pytest.mark.parametrize(("name", "reference", "data"), CASES)
def test_a_metric_agrees_plain_and_resampled(
    name: str, reference: str, data: tuple[np.ndarray, np.ndarray]
):
    targets, predictions = data
    expected = REFERENCES[reference]
    for vector in predictions:
        assert METRICS[name](targets, vector) == pytest.approx(expected(targets, vector), abs=1e-10)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(targets), (6, len(targets)))
    weights = np.stack([np.bincount(rows, minlength=len(targets)) for rows in drawn])
    found = METRICS[name].resampled(targets, predictions, weights)
    again = [[expected(targets[rows], vector[rows]) for rows in drawn] for vector in predictions]
    np.testing.assert_allclose(found, again, rtol=0, atol=1e-10)
