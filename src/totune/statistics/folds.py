"""How far single runs of a cross-validation move their score, with the rows' difficulty taken out.

The rows of two folds differ, so their scores do too, whatever the models. But every repetition
predicts every row, by models of another partition and other seeds: on the rows of one fold of one
repetition, the score of that repetition less the mean score of all S there is the deviation of one
run, whose expected square is 1 - 1 / S of its variance. (Exactly so for what a run does by chance
to single rows. Of what a model does to all its rows the other repetitions show a mixture of several
models, so up to 40% of that part is missed with S = 2; the simulations of `benchmarks/folds.py`
have it.)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.metrics import Metric
from totune.statistics.moderation import SeedVariance


def run_variance(
    metric: Metric,
    targets: NDArray[Any],
    predictions: NDArray[Any],
    folds: NDArray[Any],
    n_classes: int | None = None,
) -> SeedVariance:
    """The variance of single runs' scores on the rows of their fold, not moderated.

    Args:
        metric: how predictions are scored.
        targets: [N], or [N, W] where words are tagged.
        predictions: of at least two repetitions, [S, N] or [S, N, W].
        folds: the fold of each row in each repetition, from 1, [S, N].
        n_classes: the size of the label space; read from the data if None.

    Returns:
        The variance, on (S - 1) k degrees of freedom for k folds: a repetition's worth goes to the
        means.
    """
    repetitions, count = len(predictions), int(folds.max())
    score = metric.scorer(targets, predictions, n_classes)
    weights = np.stack([own == fold for own in folds for fold in range(1, count + 1)])  # [S k, N]
    scores = score(weights.astype(np.float64))  # [S, S k]
    own = np.repeat(np.arange(repetitions), count)
    deviations = scores[own, np.arange(len(own))] - scores.mean(axis=0)
    variance = float((deviations**2).mean()) / (1 - 1 / repetitions)
    return SeedVariance(variance, (repetitions - 1) * count)
