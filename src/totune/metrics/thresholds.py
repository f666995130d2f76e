"""Where a probability becomes a decision: the threshold that scores best on held-out rows."""

import numpy as np

from totune.metrics.metric import Array, Metric

USUAL_THRESHOLD = 0.5
MOST = 200  # thresholds that are tried: quantiles of the scores where there are more


def best_threshold(scores: Array, labels: Array, metric: Metric) -> float:
    """The threshold at or above which a row counts as 1, by its score on these rows.

    Tried are the usual .5 and the middles between neighbouring scores, so that no row lies on a
    threshold; of equals the one nearest to .5 is taken. Of several labels each has its own: call
    this once per label.

    Args:
        scores: the probability that each row is of class 1, [N].
        labels: 1 or 0 for each row, [N] (below 0: a label never seen in training).
        metric: of predictions.
    """
    values = np.unique(np.asarray(scores, dtype=np.float64))
    middles = (values[1:] + values[:-1]) / 2
    if len(middles) > MOST:
        middles = np.quantile(middles, np.linspace(0, 1, MOST), method="nearest")
    tried = np.array([USUAL_THRESHOLD, *middles])
    predictions = (np.asarray(scores)[None] >= tried[:, None]).astype(np.int64)  # [T, N]
    found = metric.sign * metric.resampled(labels, predictions, np.ones((1, len(labels))), 2)[:, 0]
    best = tried[found >= found.max() - 1e-12]
    return float(best[np.argmin(abs(best - USUAL_THRESHOLD))])
