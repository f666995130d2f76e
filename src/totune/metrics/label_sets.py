"""Metrics of rows with several labels, over matrices of zeros and ones.

Targets are [N, C + 1], predictions [S, N, C + 1]: whether each of C labels applies, and last how
many labels of the row training never saw. No prediction has any of these, so each is one that was
missed, and together they count as one more label. The F1s take one class per row too, targets [N].
"""

import numpy as np

from totune.metrics import classes
from totune.metrics.metric import Array, Floats, Scorer, product, ratio


def micro_f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """F1 of all decisions together, whichever label they are about."""
    if targets.ndim == 1:
        return classes.accuracy(targets, predictions, n_classes)
    hits = (predictions * targets).sum(axis=2).astype(np.float64)  # [S, N]
    given = predictions.sum(axis=2) + targets.sum(axis=1).astype(np.float64)
    return lambda weights: ratio(2 * product(hits, weights), product(given, weights))


def macro_f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean F1 over the labels that are a target or a prediction of any row."""
    if targets.ndim == 1:
        return classes.macro_f1(targets, predictions, n_classes)
    hits = (predictions * targets).astype(np.float64)  # [S, N, C + 1]
    given = (predictions + targets).astype(np.float64)

    def scores(weights: Floats) -> Floats:
        found = []
        for own_hits, own_given in zip(hits, given, strict=True):
            whole = weights @ own_given  # [R, C + 1]
            occurring = (whole > 0).sum(axis=1)
            found.append(ratio(ratio(2 * (weights @ own_hits), whole).sum(axis=1), occurring))
        return np.stack(found)

    return scores


def exact_match(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The share of rows with exactly the right labels (subset accuracy)."""
    right = (predictions == targets).all(axis=2).astype(np.float64)  # [S, N]
    return lambda weights: np.asarray(product(right, weights) / weights.sum(axis=1))


def label_scores(targets: Array, predictions: Array, labels: int) -> dict[str, list[float]]:
    """Support (target rows), precision, recall and F1 of each of the first `labels` labels.

    A ratio of 0 / 0 is 0.

    Args:
        targets: [N, C + 1].
        predictions: [N, C + 1].
        labels: C.
    """
    actual, found = targets[:, :labels].astype(np.int64), predictions[:, :labels].astype(np.int64)
    hits, support, predicted = (each.sum(axis=0) for each in (actual * found, actual, found))
    return {
        "support": support.astype(np.float64).tolist(),
        "precision": ratio(hits, predicted).tolist(),
        "recall": ratio(hits, support).tolist(),
        "f1": ratio(2 * hits, predicted + support).tolist(),
    }


def constant_answers(targets: Array) -> list[Array]:
    """Answers [C + 1] that ignore the text, the best one for each metric among them.

    They are the k most frequent labels for every k from 0 (of these one is best for F1), and the
    most frequent set of labels (the best for exact matches).
    """
    order = np.argsort(-targets[:, :-1].sum(axis=0), kind="stable")
    answers = np.zeros((len(order) + 2, targets.shape[1]), dtype=targets.dtype)
    for count in range(len(order) + 1):
        answers[count, order[:count]] = 1
    known = targets[targets[:, -1] == 0]
    if len(known):
        sets, counts = np.unique(known, axis=0, return_counts=True)
        answers[-1] = sets[counts.argmax()]
    return list(answers)
