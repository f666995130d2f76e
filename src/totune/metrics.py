"""Scores of predictions: arrays in, floats out.

Every metric is written once, over rows that carry weights: all ones for a plain score, how often
each row was drawn for a bootstrap resample. So thousands of resamples of many seeds cost a few
matrix products, and the score in a table and the score in a test can never differ.

Class metrics take class indices. A target below 0 (`UNSEEN`) is a label that training never saw:
no prediction can match it, and it counts as one more class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from totune.errors import ConfigError
from totune.registry import did_you_mean

Array = NDArray[Any]
Floats = NDArray[np.float64]
# targets [N], predictions [S, N], weights [R, N], number of classes -> scores [S, R]
Weighted = Callable[[Array, Array, Floats, int], Floats]

UNSEEN = -100


@dataclass(frozen=True)
class Metric:
    """A way to score predictions.

    Attributes:
        name: as in `METRICS`.
        weighted: the score of S prediction vectors under R row weightings.
        higher_is_better: the direction of progress.
        unit: "points" where a score is bounded by 1 and told times 100; otherwise what one unit
            of the score is.
    """

    name: str
    weighted: Weighted
    higher_is_better: bool = True
    unit: str = "points"

    def __call__(self, targets: Array, predictions: Array, n_classes: int | None = None) -> float:
        """The score of `predictions` [N] against `targets` [N].

        Args:
            targets: class indices (below 0: never seen in training) or numbers.
            predictions: class indices or numbers.
            n_classes: the size of the label space; read from the data if None.

        Returns:
            The score; nan if a prediction is not finite.

        Raises:
            ValueError: if the arrays are empty or differ in length.
        """
        weights = np.ones((1, np.size(targets)))
        return float(self.resampled(targets, np.atleast_2d(predictions), weights, n_classes)[0, 0])

    def resampled(
        self, targets: Array, predictions: Array, weights: Array, n_classes: int | None = None
    ) -> Floats:
        """The scores of S prediction vectors on R resamples of the rows.

        Args:
            targets: [N].
            predictions: [S, N], one row per seed.
            weights: [R, N], how often each row is in each resample.
            n_classes: the size of the label space; read from the data if None.

        Returns:
            Scores [S, R]; nan for a prediction vector that is not finite throughout.

        Raises:
            ValueError: if there are no rows, or the arrays disagree about their number.
        """
        targets, predictions = np.asarray(targets), np.asarray(predictions)
        rows = {targets.shape[-1], predictions.shape[-1], weights.shape[-1]}
        if len(rows) > 1 or 0 in rows:
            raise ValueError(f"{self.name} needs as many predictions as targets, got {rows} rows")
        finite: Array = np.asarray(np.isfinite(predictions).all(axis=1))  # [S]
        clean = np.where(finite[:, None], predictions, 0)
        scores = self.weighted(
            targets,
            clean.astype(predictions.dtype),
            weights.astype(np.float64, copy=False),
            n_classes or 0,
        )
        return np.where(finite[:, None], scores, np.nan)


def get_metric(name: str) -> Metric:
    """The metric called `name`; raises `ConfigError` with the nearest name if there is none."""
    if name not in METRICS:
        raise ConfigError(f"There is no metric called {name!r}. {did_you_mean(name, METRICS)}")
    return METRICS[name]


def accuracy(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """The share of rows whose predicted class is the target."""
    right = (predictions == targets).astype(np.float64)  # [S, N]
    return np.asarray(_product(right, weights) / weights.sum(axis=1))


def f1(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """F1 of class 1 where there are two classes, else the mean over the classes that occur.

    A class occurs if it is a target or a prediction, and it scores 0 if it is never right; so
    the F1 of data without class 1 on either side is 0.
    """
    n = _n_classes(targets, predictions, n_classes)
    hits, predicted, actual = _class_counts(targets, predictions, weights, n)
    total = predicted + actual  # [S, C, R]
    scores = 2 * hits / np.maximum(total, 1)
    if n == 2:
        return np.asarray(scores[:, 1])
    return np.asarray(scores.sum(axis=1) / (total > 0).sum(axis=1))


def matthews(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """Matthews correlation, R_K for several classes (Gorodkin 2004).

    It is 0 where targets or predictions are constant (the formula there is 0 / 0).
    """
    n = _n_classes(targets, predictions, n_classes)
    hits, predicted, actual = _class_counts(targets, predictions, weights, n)
    rows = weights.sum(axis=1)  # [R]
    covariance = hits.sum(axis=1) * rows - (predicted * actual).sum(axis=1)
    spread = (rows**2 - (predicted**2).sum(axis=1)) * (rows**2 - (actual**2).sum(axis=0))
    safe = np.where(spread > 0, spread, 1.0)
    return np.where(spread > 0, covariance / np.sqrt(safe), 0.0)


def pearson(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """Pearson correlation; 0 where targets or predictions are constant."""
    x, x_noise = _centred(targets[None])  # [1, N]
    y, y_noise = _centred(predictions)  # [S, N]
    rows = weights.sum(axis=1)
    x_mean, y_mean = _product(x, weights) / rows, _product(y, weights) / rows
    covariance = _product(x * y, weights) / rows - x_mean * y_mean
    x_variance = _variance(_product(x * x, weights) / rows, x_mean, x_noise)
    y_variance = _variance(_product(y * y, weights) / rows, y_mean, y_noise)
    return _correlation(covariance, x_variance, y_variance)


def spearman(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """Spearman correlation (Pearson over average ranks); 0 where one side is constant."""
    rows = weights.sum(axis=1)
    middle = (rows + 1) / 2  # the mean rank [R]
    x = _ranks(targets, weights) - middle[:, None]  # [R, N]
    x_variance = (weights * x * x).sum(axis=1)
    scores = []
    for vector in predictions:
        y = _ranks(vector, weights) - middle[:, None]
        covariance = (weights * x * y).sum(axis=1)
        scores.append(_correlation(covariance, x_variance, (weights * y * y).sum(axis=1)))
    return np.stack(scores)


def mse(targets: Array, predictions: Array, weights: Floats, n_classes: int) -> Floats:
    """The mean squared error."""
    return np.asarray(_product((predictions - targets) ** 2.0, weights) / weights.sum(axis=1))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", accuracy),
        Metric("f1", f1),
        Metric("matthews", matthews),
        Metric("pearson", pearson),
        Metric("spearman", spearman),
        Metric("mse", mse, higher_is_better=False, unit="squared label units"),
    )
}


def _product(values: Array, weights: Floats) -> Floats:
    """The weighted sums of values [S, N] under weights [R, N]: [S, R]."""
    return np.asarray(values @ weights.T, dtype=np.float64)


def _n_classes(targets: Array, predictions: Array, n_classes: int) -> int:
    return int(max(2, n_classes, targets.max() + 1, predictions.max() + 1))


def _class_counts(
    targets: Array, predictions: Array, weights: Floats, n: int
) -> tuple[Floats, Floats, Floats]:
    """How often each class is hit and predicted [S, C, R], and is the target [C, R].

    C is `n`, and one more if some targets were never seen in training.
    """
    actual = np.where(targets < 0, n, targets).astype(np.intp)
    size = n + int((targets < 0).any())
    seeds = len(predictions)
    shift = (np.arange(seeds) * size)[:, None]
    codes = (predictions.astype(np.intp) + shift).ravel()
    right = (predictions == targets).ravel().astype(np.float64)
    rows = np.tile(np.arange(len(targets)), seeds)
    shape = (seeds * size, len(targets))
    hits = sparse.csr_matrix((right, (codes, rows)), shape=shape) @ weights.T
    predicted = sparse.csr_matrix((np.ones_like(right), (codes, rows)), shape=shape) @ weights.T
    return (
        hits.reshape(seeds, size, -1),
        predicted.reshape(seeds, size, -1),
        _grouped(actual, size, weights),
    )


def _grouped(codes: Array, size: int, weights: Floats) -> Floats:
    """The weight of every group: codes [N], weights [R, N] -> [size, R]."""
    at = np.arange(len(codes))
    indicator = sparse.csr_matrix((np.ones(len(codes)), (codes, at)), shape=(size, len(codes)))
    return np.asarray(indicator @ weights.T)


def _centred(values: Array) -> tuple[Floats, Floats]:
    """Values [S, N] around their means, and the variance [S, 1] that is rounding alone."""
    wide = values.astype(np.float64)
    noise = (1e-13 * np.abs(wide).max(axis=1, keepdims=True)) ** 2
    return wide - wide.mean(axis=1, keepdims=True), noise


def _variance(squares: Floats, mean: Floats, noise: Floats) -> Floats:
    """The variance from mean square and mean [S, R]; exactly 0 where it is rounding alone."""
    variance = squares - mean**2
    return np.where(variance > np.maximum(noise, 1e-13 * squares), variance, 0.0)


def _correlation(covariance: Floats, x_variance: Floats, y_variance: Floats) -> Floats:
    spread = np.sqrt(x_variance) * np.sqrt(y_variance)
    safe = np.where(spread > 0, spread, 1.0)
    return np.clip(np.where(spread > 0, covariance / safe, 0.0), -1.0, 1.0)


def _ranks(values: Array, weights: Floats) -> Floats:
    """Average ranks, counted from 1, of values [N] repeated as weights [R, N] say: [R, N]."""
    distinct, group = np.unique(values, return_inverse=True)
    sizes = _grouped(group, len(distinct), weights)  # [G, R]
    return np.asarray((sizes.cumsum(axis=0) - (sizes - 1) / 2)[group].T)
