"""How probable it is that the seeds that are left would settle a comparison, and how."""

import math
from dataclasses import dataclass, replace

from scipy import stats

from totune.statistics import Paired

_NONE = 1e-12  # the normal distribution has no standard deviation of 0


@dataclass(frozen=True)
class Forecast:
    """How probable the findings on a strategy are after all the seeds.

    Attributes:
        worse: that it is credibly worse than the best by more than the tolerance.
        good: that it is credibly within the tolerance of the best.
        ahead: that it is ahead of the best by more than the tolerance, credibly or not.
    """

    worse: float
    good: float
    ahead: float


def forecast(pair: Paired, tolerance: float, seeds: int, level: float) -> Forecast:
    """The chances of a comparison with all the seeds.

    Conditional power (Lan, Simon and Halperin 1982) with a flat prior: the mean difference of all
    seeds is normal around the present one, with the variance of what is still to come. The test
    rows stay the same, so their part of the interval stays too. Where nothing is known of the noise
    of seeds, it is taken to be as large as that of the rows.

    Args:
        pair: how far the best is ahead.
        tolerance: how much worse is still good enough.
        seeds: how many there will be.
        level: error of the last look for this comparison.
    """
    spread = pair.spread
    if not spread.is_known:
        spread = replace(spread, seeds=(spread.examples / 2, spread.examples / 2))
    reach = spread.reach(level, (seeds, seeds))
    to_come = (
        variance * max(0.0, 1 / n - 1 / seeds)
        for variance, n in zip(spread.seeds, spread.n_seeds, strict=True)
    )
    around = stats.norm(pair.difference, math.sqrt(sum(to_come)) or _NONE)
    return Forecast(
        worse=float(around.sf(tolerance + reach)),
        good=float(around.cdf(tolerance - reach)),
        ahead=float(around.cdf(-tolerance)),
    )
