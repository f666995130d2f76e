"""The variances of few seeds, moderated: a study's strategies tell of each other.

With three seeds a strategy's variance s^2 has two degrees of freedom, and a t interval on it is
useless. Smyth (2004, section 3) lets many such variances share what they know: the true ones are
drawn from d0 s0^2 / chi^2(d0), so that an s^2 on d degrees of freedom follows s0^2 F(d, d0), and
given it the true variance has the posterior mean

    v = (d0 s0^2 + d s^2) / (d0 + d)    on d0 + d degrees of freedom.

He estimates d0 and s0^2 from the moments of log s^2 over thousands of genes. A study has two to
eight strategies, among which those moments say that d0 is infinite every second time, so here d0
and log s0^2 are integrated out on a grid: their posterior weights are the likelihood above, and
what remains unknown of them takes degrees of freedom off. For many variances the two agree (a
test compares them). As in Phipson et al. (2016) one strategy far from the others is not squeezed:
it makes small d0 likelier, and F has heavy tails.

What is known before a study is little: d0 is 1, 2, 4 or 8 with equal weights (78 standard
deviations of `docs/results.md`, in 16 studies, have their maximum likelihood at 4), and where a
score is told in points, s0 is within a factor of e of its usual size (.7 points on 850 rows, the
maximum likelihood of the same 78) with a probability of 68%, where theirs vary by a factor of 1.35.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from totune.metrics import Metric
from totune.statistics.samples import Floats, Summary, Values, summary

_PRIOR_DFS = np.array([1.0, 2.0, 4.0, 8.0])
_LEVEL_SD = 2.0  # of log s0^2 around its usual size
_STEPS = 81  # of log s0^2
_MARGIN = 7.0  # how far it reaches beyond what was seen
_MOST_DF = 1e6


@dataclass(frozen=True)
class SeedVariance:
    """The variance of single seeds' scores, and how well it is known.

    Attributes:
        variance: in the square of the score's unit.
        df: degrees of freedom; infinite where seeds change nothing.
    """

    variance: float
    df: float


FIXED = SeedVariance(0.0, math.inf)


def usual_variance(metric: Metric, n_rows: float) -> float | None:
    """The usual variance of seeds' scores on a test set of `n_rows`; None on an open scale.

    (.5 points)^2 for the model, and what few rows add: seeds disagree on some of them.
    """
    return 0.005**2 + 0.02 / n_rows if metric.unit == "points" else None


def moderate(variances: Values, dfs: Values, level: float | None = None) -> tuple[Floats, Floats]:
    """Moderates the variances of strategies whose seeds differ.

    Args:
        variances: s^2 with n - 1 of each strategy's scores, [..., K] for K strategies of one or
            more studies; any number where there is one seed.
        dfs: seeds less one, [K].
        level: the usual variance, see `usual_variance`; None where nothing is usual.

    Returns:
        Variances [..., K] and their degrees of freedom [..., K]: of the scaled inverse chi^2
        distribution whose logarithm has the mean and variance of the posterior.
    """
    d = np.asarray(dfs, dtype=np.float64)
    s2 = np.where(d > 0, np.asarray(variances, dtype=np.float64), 0.0)
    if not s2.size or (level is None and not (s2 > 0).any(axis=-1).all()):
        return np.zeros_like(s2), np.full_like(s2, math.inf)
    log_s0 = _levels(s2, level)[:, None, ..., None]  # [T, 1, ..., 1]
    d0 = _PRIOR_DFS.reshape(-1, *[1] * s2.ndim)  # [D, ..., 1]
    total = d0 * np.exp(log_s0) + d * s2  # [T, D, ..., K]
    half = (d0 + d) / 2
    logs = special.gammaln(half) - special.gammaln(d0 / 2) + d0 / 2 * (np.log(d0) + log_s0)
    logs = (logs - half * np.log(total)).sum(axis=-1, keepdims=True)  # [T, D, ..., 1]
    if level is not None:
        logs = logs - (log_s0 - math.log(level)) ** 2 / (2 * _LEVEL_SD**2)
    weights = np.exp(logs - special.logsumexp(logs, axis=(0, 1)))
    means = np.log(total / 2) - special.digamma(half)  # of the logarithm, given d0 and s0
    mean = (weights * means).sum(axis=(0, 1))  # [..., K]
    spread = special.polygamma(1, half) + (means - mean) ** 2
    df = 2 * _trigamma_inverse((weights * spread).sum(axis=(0, 1)))
    return np.exp(mean + special.digamma(df / 2)) * 2 / df, df


def moderated_summaries(
    samples: Sequence[Values],
    metric: Metric,
    n_rows: int | None = None,
    fixed: Sequence[bool] | None = None,
    confidence: float = 0.95,
) -> list[Summary]:
    """Summaries of a study's strategies, whose intervals rest on moderated variances.

    Args:
        samples: the scores of each strategy, one per seed.
        metric: that they are in; intervals stay inside its scale.
        n_rows: of the test set; None if not known.
        fixed: whether seeds change nothing, for each strategy; if None, where all scores are equal.
        confidence: of the intervals for the means over seeds, on this test set.

    Returns:
        As `summary` gives them but for `low` and `high`; `std` is that of the sample itself.

    Raises:
        ValueError: if a sample is empty.
    """
    plain = [summary(sample, confidence) for sample in samples]
    still = [one.std == 0 for one in plain] if fixed is None else fixed
    moving = [at for at, one in enumerate(plain) if one.n > 1 and not still[at]]
    level = usual_variance(metric, n_rows) if n_rows else None
    own, dfs = [plain[at].std ** 2 for at in moving], [plain[at].n - 1 for at in moving]
    lowest, highest = metric.scale
    for at, variance, df in zip(moving, *moderate(own, dfs, level), strict=True):
        one = plain[at]
        reach = -special.stdtrit(df, (1 - confidence) / 2) * math.sqrt(variance / one.n)
        low, high = max(lowest, one.mean - reach), min(highest, one.mean + reach)
        plain[at] = replace(one, low=float(low), high=float(high))
    return plain


def _levels(s2: Floats, level: float | None) -> Floats:
    """The grid of log s0^2 [T, ...] of each study."""
    seen = np.where(s2 > 0, s2, np.nan)
    if level is not None:
        seen = np.concatenate([seen, np.full((*s2.shape[:-1], 1), level)], axis=-1)
    low, high = np.log(np.nanmin(seen, axis=-1)), np.log(np.nanmax(seen, axis=-1))
    return np.linspace(low - _MARGIN, high + _MARGIN, _STEPS)


def _trigamma_inverse(values: Floats) -> Floats:
    """Where trigamma takes these values, by Newton's method (Smyth 2004, appendix)."""
    found = 0.5 + 1 / values
    for _ in range(50):
        trigamma = special.polygamma(1, found)
        found = found + trigamma * (1 - trigamma / values) / special.polygamma(2, found)
    return np.asarray(np.minimum(found, _MOST_DF))
