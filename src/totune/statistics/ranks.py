"""Rank correlation of few values, with a p-value that needs no large sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]

LEVEL = 0.05
_MOST_EXACT = 8  # of which there are 40,320 orders
_ORDERS = 9_999  # drawn where there are more
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rho of n pairs of values.

    Attributes:
        rho: Pearson's correlation of the ranks; equal values share the mean of their ranks.
        p: two-sided: the share of orders of one side whose correlation is at least as far from 0.
        exact: whether these are all orders, not some drawn at random.
        needed: the smallest distance from 0 with a p-value below 0.05; None where even a perfect
            ranking has none.
    """

    rho: float
    p: float
    n: int
    exact: bool
    needed: float | None


def rank_correlation(
    first: Sequence[float], second: Sequence[float], seed: int = 0
) -> RankCorrelation:
    """Spearman's rank correlation with a permutation test.

    Args:
        first: [n], n at least 2.
        second: [n].
        seed: fixes the orders that are drawn where n is above 8.

    Raises:
        ValueError: if the sides differ in length, hold a value that is not finite, or one of them
            has no two different values.
    """
    if len(first) != len(second) or not np.isfinite([*first, *second]).all():
        raise ValueError("a rank correlation needs pairs of finite values")
    ranks, others = _standard(first), _standard(second)
    exact = len(ranks) <= _MOST_EXACT
    null = np.sort(np.abs(others[_orders(len(ranks), exact, seed)] @ ranks))  # [R]
    rho = float(np.clip(ranks @ others, -1, 1))
    needed = np.unique(np.minimum(null, 1))
    enough = needed[_share(null, needed, exact) < LEVEL]
    return RankCorrelation(
        rho=rho,
        p=float(_share(null, np.array([abs(rho)]), exact)[0]),
        n=len(ranks),
        exact=exact,
        needed=float(enough[0]) if len(enough) else None,
    )


def _standard(values: Sequence[float]) -> Floats:
    """Ranks with mean 0 and length 1: the product of two sides is their correlation."""
    ranks = rankdata(values)
    centred: Floats = ranks - ranks.mean()
    length = np.linalg.norm(centred)
    if not length:
        raise ValueError("a rank correlation needs two different values on each side")
    return centred / length


def _orders(n: int, exact: bool, seed: int) -> NDArray[np.int64]:
    """Orders of n things, [R, n]."""
    if exact:
        return np.array(list(permutations(range(n))))
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (_ORDERS, 1)), axis=1)


def _share(null: Floats, least: Floats, exact: bool) -> Floats:
    """The share of the sorted `null` that reaches each of `least`; drawn ones count one more."""
    reached = len(null) - np.searchsorted(null, least - _ROUNDING)
    more = 0 if exact else 1
    return np.asarray((reached + more) / (len(null) + more), dtype=np.float64)
