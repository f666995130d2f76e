"""Summaries, tests and effect sizes for samples of scores, one score per seed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "greater", "less"]
Values = Sequence[float] | NDArray[Any]

# How much of a score's size is rounding: a smaller spread is none.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Summary:
    """A sample of scores.

    Attributes:
        std: standard deviation with n - 1 (nan for n = 1).
        low: lower end of the t interval for the mean (nan for n = 1).
        high: its upper end.
    """

    mean: float
    std: float
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class Welch:
    """Welch's t-test of mean a - mean b; `low` and `high` bound it at the confidence asked for."""

    t: float
    df: float
    p: float
    low: float
    high: float


def summary(values: Values, confidence: float = 0.95) -> Summary:
    """Mean, spread and t interval of the scores of one strategy.

    One value has no spread: `std`, `low` and `high` are then nan.

    Raises:
        ValueError: if there is no value.
    """
    sample = _sample(values)
    n, mean = len(sample), float(sample.mean())
    if n == 1:
        return Summary(mean, math.nan, 1, math.nan, math.nan)
    std = math.sqrt(_variance(sample))
    reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * std / math.sqrt(n)
    return Summary(mean, std, n, mean - reach, mean + reach)


def welch(
    a: Values, b: Values, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Welch:
    """Welch's t-test for two samples of unequal variance (Welch 1947), as the Hart paper uses.

    t = (mean a - mean b) / sqrt(v_a + v_b) with v = s^2 / n, and the Welch-Satterthwaite degrees
    of freedom. It asks about new seeds on this very test set; `paired_bootstrap` asks about new
    rows too.

    Args:
        a: scores of the first strategy.
        b: scores of the second.
        alternative: "greater" asks whether mean a > mean b.
        confidence: of the interval, which is two-sided whatever the alternative.

    Returns:
        All nan where a sample has one value. Where neither sample varies, the interval is the
        difference alone, t is 0 or infinite, and p says which (two-sided: 1 or 0).
    """
    first, second = _sample(a), _sample(b)
    difference = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return Welch(math.nan, math.nan, math.nan, math.nan, math.nan)
    parts = [_variance(sample) / len(sample) for sample in (first, second)]
    df = satterthwaite(parts, [len(first) - 1, len(second) - 1])
    error = math.sqrt(sum(parts))
    t = _in_errors(difference, error)
    reach = float(stats.t.ppf((1 + confidence) / 2, df)) * error
    return Welch(t, df, _tail(t, df, alternative), difference - reach, difference + reach)


def satterthwaite(parts: Sequence[float], dfs: Sequence[float]) -> float:
    """The degrees of freedom of a sum of independent variance estimates (Satterthwaite 1946).

    Args:
        parts: the estimates.
        dfs: the degrees of freedom of each.

    Returns:
        Infinity where no part varies.
    """
    spread = sum(part**2 / df for part, df in zip(parts, dfs, strict=True) if part > 0)
    return sum(parts) ** 2 / spread if spread > 0 else math.inf


def holm(p: Values) -> Floats:
    """Holm's step-down adjustment (Holm 1979): the family-wise error is kept under dependence.

    Args:
        p: raw p-values [m].

    Returns:
        Adjusted p-values [m]: the running maximum of (m - rank + 1) p over ascending p, at most 1.

    Raises:
        ValueError: for a value outside [0, 1].
    """
    raw = np.asarray(p, dtype=np.float64)
    if not ((raw >= 0) & (raw <= 1)).all():
        raise ValueError(f"p-values lie in [0, 1], got {raw.tolist()}")
    order = np.argsort(raw, kind="stable")
    factors = len(raw) - np.arange(len(raw))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * raw[order]))
    return adjusted


def cohens_d(a: Values, b: Values) -> float:
    """The mean of a minus that of b in pooled standard deviations (Cohen 1988).

    nan where a sample has one value; 0 or infinite where neither sample varies.
    """
    first, second = _sample(a), _sample(b)
    df = len(first) + len(second) - 2
    if min(len(first), len(second)) < 2:
        return math.nan
    squares = (len(first) - 1) * _variance(first) + (len(second) - 1) * _variance(second)
    return _in_errors(float(first.mean() - second.mean()), math.sqrt(squares / df))


def hedges_g(a: Values, b: Values) -> float:
    """Cohen's d without its bias in small samples (Hedges 1981, the exact gamma form)."""
    df = len(a) + len(b) - 2
    d = cohens_d(a, b)
    if not math.isfinite(d):
        return d
    logs = special.gammaln(df / 2) - special.gammaln((df - 1) / 2) - math.log(df / 2) / 2
    return d * math.exp(float(logs))


def paired_dz(a: Values, b: Values) -> float:
    """The mean of a - b in standard deviations of a - b (Cohen 1988).

    nan for one pair; 0 or infinite where the differences do not vary.
    """
    difference = _sample(a) - _sample(b)
    if len(difference) < 2:
        return math.nan
    return _in_errors(float(difference.mean()), math.sqrt(_variance(difference)))


def _sample(values: Values) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"a sample is a list of at least one number, got shape {sample.shape}")
    return sample


def _variance(sample: Floats) -> float:
    """The variance with n - 1; exactly 0 where values differ by rounding alone."""
    scale = float(np.abs(sample).max())
    if float(np.ptp(sample)) <= _ROUNDING * scale:
        return 0.0
    return float(sample.var(ddof=1))


def _in_errors(difference: float, error: float) -> float:
    """A difference in standard errors; 0 or infinite where there is no error."""
    if error > 0:
        return difference / error
    return 0.0 if difference == 0 else math.copysign(math.inf, difference)


def _tail(t: float, df: float, alternative: Alternative) -> float:
    """The p-value of a t statistic."""
    if alternative == "two-sided":
        return float(2 * stats.t.sf(abs(t), df))
    return float(stats.t.sf(t if alternative == "greater" else -t, df))
