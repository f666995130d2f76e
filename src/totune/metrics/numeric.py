"""Metrics of one number per row."""

import numpy as np

from totune.metrics.metric import Array, Floats, Scorer, product


def pearson(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """Pearson correlation; 0 where targets or predictions are constant."""
    x, x_noise = _centred(targets[None])  # [1, N]
    y, y_noise = _centred(predictions)  # [S, N]

    def scores(weights: Floats) -> Floats:
        rows = weights.sum(axis=1)
        x_mean, y_mean = product(x, weights) / rows, product(y, weights) / rows
        covariance = product(x * y, weights) / rows - x_mean * y_mean
        x_variance = _variance(product(x * x, weights) / rows, x_mean, x_noise)
        y_variance = _variance(product(y * y, weights) / rows, y_mean, y_noise)
        return _correlation(covariance, x_variance, y_variance)

    return scores


def spearman(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """Spearman correlation (Pearson over average ranks); 0 where one side is constant."""

    def scores(weights: Floats) -> Floats:
        middle = (weights.sum(axis=1) + 1) / 2  # the mean rank [R]
        x = _ranks(targets, weights) - middle[:, None]  # [R, N]
        x_variance = (weights * x * x).sum(axis=1)
        found = []
        for vector in predictions:
            y = _ranks(vector, weights) - middle[:, None]
            covariance = (weights * x * y).sum(axis=1)
            found.append(_correlation(covariance, x_variance, (weights * y * y).sum(axis=1)))
        return np.stack(found)

    return scores


def mse(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean squared error."""
    squares = (predictions - targets) ** 2.0  # [S, N]
    return lambda weights: np.asarray(product(squares, weights) / weights.sum(axis=1))


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
    from scipy import sparse

    distinct, group = np.unique(values, return_inverse=True)
    at = np.arange(len(group))
    shape = (len(distinct), len(group))
    indicator = sparse.csr_matrix((np.ones(len(group)), (group, at)), shape=shape)
    sizes = np.asarray(indicator @ weights.T)  # [G, R]
    return np.asarray((sizes.cumsum(axis=0) - (sizes - 1) / 2)[group].T)
