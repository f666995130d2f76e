"""Metrics of one class per row."""

from collections.abc import Callable

import numpy as np

from totune.metrics.metric import Array, Floats, Scorer, product

# weights [R, N] -> hits and predicted [S, C, R], actual [C, R]
Counter = Callable[[Floats], tuple[Floats, Floats, Floats]]


def accuracy(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The share of rows whose predicted class is the target."""
    right = (predictions == targets).astype(np.float64)  # [S, N]
    return lambda weights: np.asarray(product(right, weights) / weights.sum(axis=1))


def f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """F1 of class 1 where there are two classes, else the mean over the classes that occur.

    A class occurs if it is a target or a prediction, and it scores 0 if it is never right; so
    the F1 of data without class 1 on either side is 0.
    """
    n = size_of(targets, predictions, n_classes)
    counter = class_counter(targets, predictions, n, np.arange(len(targets)))

    def scores(weights: Floats) -> Floats:
        hits, predicted, actual = counter(weights)
        if n == 2:
            return np.asarray(2 * hits[:, 1] / np.maximum(predicted[:, 1] + actual[1], 1))
        return mean_f1(hits, predicted, actual)

    return scores


def macro_f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean F1 over the classes that are a target or a prediction."""
    counter = _counter(targets, predictions, n_classes)
    return lambda weights: mean_f1(*counter(weights))


def weighted_f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean F1 over the classes, each by its share of the targets."""
    counter = _counter(targets, predictions, n_classes)

    def scores(weights: Floats) -> Floats:
        hits, predicted, actual = counter(weights)
        each = 2 * hits / np.maximum(predicted + actual, 1)  # [S, C, R]
        return np.asarray((each * actual).sum(axis=1) / weights.sum(axis=1))

    return scores


def balanced_accuracy(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean over the classes of the targets of how many of their rows are found."""
    counter = _counter(targets, predictions, n_classes)

    def scores(weights: Floats) -> Floats:
        hits, _, actual = counter(weights)
        return np.asarray((hits / np.maximum(actual, 1)).sum(axis=1) / (actual > 0).sum(axis=0))

    return scores


def matthews(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """Matthews correlation, R_K for several classes (Gorodkin 2004).

    It is 0 where targets or predictions are constant (the formula there is 0 / 0).
    """
    counter = _counter(targets, predictions, n_classes)

    def scores(weights: Floats) -> Floats:
        hits, predicted, actual = counter(weights)
        rows = weights.sum(axis=1)  # [R]
        covariance = hits.sum(axis=1) * rows - (predicted * actual).sum(axis=1)
        spread = (rows**2 - (predicted**2).sum(axis=1)) * (rows**2 - (actual**2).sum(axis=0))
        safe = np.where(spread > 0, spread, 1.0)
        return np.where(spread > 0, covariance / np.sqrt(safe), 0.0)

    return scores


def mean_f1(hits: Floats, predicted: Floats, actual: Floats) -> Floats:
    """The mean F1 [S, R] over the classes that are a target or a prediction."""
    total = predicted + actual  # [S, C, R]
    scores = 2 * hits / np.maximum(total, 1)
    return np.asarray(scores.sum(axis=1) / (total > 0).sum(axis=1))


def size_of(targets: Array, predictions: Array, n_classes: int) -> int:
    """How many classes there are: as many as said, at least two, and more if more are used."""
    return int(max(2, n_classes, targets.max() + 1, predictions.max() + 1))


def _counter(targets: Array, predictions: Array, n_classes: int) -> Counter:
    """The counter of one class per row."""
    n = size_of(targets, predictions, n_classes)
    return class_counter(targets, predictions, n, np.arange(len(targets)))


def class_counter(targets: Array, predictions: Array, n: int, rows: Array) -> Counter:
    """How often each class is hit and predicted, and is the target, under row weights.

    Args:
        targets: [P].
        predictions: [S, P].
        n: how many classes there are; C is one more if some targets were never seen in training.
        rows: the row of each of the P positions, [P].
    """
    from scipy import sparse

    actual = np.where(targets < 0, n, targets).astype(np.intp)
    size, seeds = n + int((targets < 0).any()), len(predictions)
    shift = (np.arange(seeds) * size)[:, None]
    codes = (predictions.astype(np.intp) + shift).ravel()
    right = (predictions == targets).ravel().astype(np.float64)
    every = np.tile(rows, seeds)
    shape = (seeds * size, int(rows.max()) + 1)
    hits = sparse.csr_matrix((right, (codes, every)), shape=shape)
    predicted = sparse.csr_matrix((np.ones_like(right), (codes, every)), shape=shape)
    targeted = sparse.csr_matrix((np.ones(len(rows)), (actual, rows)), shape=(size, shape[1]))

    def counts(weights: Floats) -> tuple[Floats, Floats, Floats]:
        return (
            (hits @ weights.T).reshape(seeds, size, -1),
            (predicted @ weights.T).reshape(seeds, size, -1),
            np.asarray(targeted @ weights.T),
        )

    return counts
