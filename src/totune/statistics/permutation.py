"""The paired permutation test: what if the names of the two strategies were drawn by lot?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.statistics.samples import Alternative, Floats, Values

EXACT_UP_TO = 16
PATTERNS = 20_000
_TOLERANCE = 1e-12  # sums of the same differences in other orders differ by rounding


@dataclass(frozen=True)
class Permutation:
    """A sign-flip test: the observed mean of a - b, its p-value, and whether that is exact."""

    statistic: float
    p: float
    exact: bool


def paired_permutation(
    a: Values, b: Values, alternative: Alternative = "two-sided", seed: int = 0
) -> Permutation:
    """Sign-flip permutation test of the mean of a - b (Fisher 1935; Pitman 1937).

    If pairs are exchangeable, every sign pattern of the differences is equally likely; p is the
    share of patterns at least as extreme as the observed one. Up to 16 pairs all 2^n patterns are
    counted and p is exact; above, 20,000 are drawn and p = (count + 1) / (drawn + 1), which keeps
    the error rate (Phipson and Smyth 2010). Two-sided p is min(1, 2 min(greater, less)). With n
    pairs no exact two-sided p lies below 2 / 2^n: five can never reach .05.

    Args:
        a: scores [n] of the first strategy, paired with those of the second.
        b: scores [n] of the second.
        alternative: "greater" asks whether a > b.
        seed: of the drawn patterns.

    Raises:
        ValueError: if the samples are empty or differ in length.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(f"pairs need two equal lists, got {first.shape} and {second.shape}")
    difference = first - second
    exact = len(difference) <= EXACT_UP_TO
    signs = _all_signs(len(difference)) if exact else _drawn_signs(len(difference), seed)
    observed = float(difference.mean())
    means = signs @ difference / len(difference)  # [patterns]
    extra = 0 if exact else 1
    greater = _share(means >= observed - _TOLERANCE, extra)
    less = _share(means <= observed + _TOLERANCE, extra)
    p = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}
    return Permutation(observed, p[alternative], exact)


def _share(extreme: NDArray[Any], extra: int) -> float:
    return float((extreme.sum() + extra) / (len(extreme) + extra))


def _all_signs(n: int) -> Floats:
    """Every pattern of n signs: [2^n, n]."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return (1 - 2 * bits).astype(np.float64)


def _drawn_signs(n: int, seed: int) -> Floats:
    drawn = np.random.default_rng(seed).integers(0, 2, size=(PATTERNS, n))
    return (1 - 2 * drawn).astype(np.float64)
