"""Metrics of one tag per word, whatever the tags mean."""

import numpy as np

from totune.metrics.classes import class_counter, mean_f1, size_of
from totune.metrics.metric import PADDING, Array, Floats, Scorer, product, ratio


def accuracy(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The share of words whose predicted tag is the target."""
    words = targets != PADDING  # [N, W]
    right = ((predictions == targets) & words).sum(axis=2).astype(np.float64)  # [S, N]
    lengths = words.sum(axis=1)[None].astype(np.float64)
    return lambda weights: ratio(product(right, weights), product(lengths, weights))


def f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The mean F1 over the tags that occur as a target or a prediction, each over all words."""
    words = targets != PADDING
    found, given = targets[words], predictions[:, words]  # [P], [S, P]
    rows = np.arange(len(targets)).repeat(words.sum(axis=1))
    counter = class_counter(found, given, size_of(found, given, n_classes), rows)

    def scores(weights: Floats) -> Floats:
        return mean_f1(*counter(weights))

    return scores
