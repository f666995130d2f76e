"""From cheap signals to the probability that each family of strategies wins.

In four steps, each of which can be followed by hand:

1. Prior odds of each family against tuning the whole encoder: results of the same kind of encoder
   and data, counted (`evidence.prior_of`). With Peters et al. 2019 (Table 1) this says: a language
   model under pairs, keep it frozen; a transformer under pairs, tune it; else they are close.
2. Headroom, the share of a constant answer's errors that the best linear probe leaves, moves the
   log odds of all that tunes against frozen features: `evidence.headroom_weight` per unit, fitted
   to the same results; for transformers only. More headroom, more tuning.
3. Few rows move them back: one unit per factor of ten below 1,000 training rows. No result has so
   few, so this is a judgement, after the cautions of Wang et al. 2019 on small data.
4. Certainty is bounded by evidence: one more result per family, spread evenly, joins those that
   were counted, and below the fewest rows of any result these count half. The interval is that of
   a Dirichlet distribution of so many results.

Left out one by one, the results of frozen features against the whole encoder are forecast with a
mean squared error of 0.10; equal chances would have 0.15.

Three signals are told and not weighed, since results show no relation: how much better the probe is
than tf-idf, which block it reads, and the divergence from a pretraining corpus (Peters et al. 2019,
Table 6: "no significant correlation").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from totune.analyses.measuring.evidence import (
    FEWEST_ROWS,
    RESULTS,
    Family,
    Kind,
    Prior,
    Result,
    Shape,
    headroom_weight,
    prior_of,
)

FEW_ROWS = 1_000
MOST_HEADROOM = 1.5  # a probe may be worse than a constant answer; how much says nothing more
CONFIDENCE = 0.9


@dataclass(frozen=True)
class Signals:
    """What is known before anything is trained.

    Attributes:
        rows: of the training set.
        headroom: the share of a constant answer's errors that the best probe leaves; None where
            nothing can be probed.
    """

    kind: Kind
    shape: Shape
    rows: int
    headroom: float | None = None


@dataclass(frozen=True)
class Chance:
    """A family's probability of winning, its 90% interval, and what the prior alone says."""

    probability: float
    low: float
    high: float
    prior: float


def forecast(signals: Signals, results: Sequence[Result] = RESULTS) -> dict[Family, Chance]:
    """The chances of the families that the encoder can have; they sum to 1.

    Args:
        signals: what was measured.
        results: what the forecast rests on.
    """
    prior = prior_of(signals.kind, signals.shape, results)
    shift = tuning_shift(signals, results)
    moved = {
        family: odds * (1.0 if family == "frozen" else math.exp(shift))
        for family, odds in prior.odds.items()
    }
    before, after = _bounded(prior.odds, prior, signals), _bounded(moved, prior, signals)
    size = counted_results(prior, signals) + len(moved)
    return {
        family: Chance(chance, *_interval(chance, size), before[family])
        for family, chance in after.items()
    }


def tuning_shift(signals: Signals, results: Sequence[Result] = RESULTS) -> float:
    """What headroom and rows add to the log odds of tuning against frozen features."""
    shift = 0.0
    if signals.headroom is not None and signals.kind == "transformer":
        slope, middle = headroom_weight(results)
        shift += slope * (min(max(signals.headroom, 0.0), MOST_HEADROOM) - middle)
    return shift - max(0.0, math.log10(FEW_ROWS / signals.rows))


def counted_results(prior: Prior, signals: Signals) -> float:
    """How many results the forecast may count on."""
    return prior.results * (0.5 if signals.rows < FEWEST_ROWS else 1.0)


def brier(chances: Mapping[str, float], winner: str) -> float:
    """The squared distance of probabilities from what happened (Brier 1950): 0 best, 2 worst."""
    return sum((chance - (family == winner)) ** 2 for family, chance in chances.items())


def _bounded(odds: Mapping[Family, float], prior: Prior, signals: Signals) -> dict[Family, float]:
    """Odds as probabilities, drawn to evenness by one result per family."""
    total, results = sum(odds.values()), counted_results(prior, signals)
    return {
        family: (results * value / total + 1) / (results + len(odds))
        for family, value in odds.items()
    }


def _interval(chance: float, size: float) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    beta = stats.beta(chance * size, (1 - chance) * size)
    return float(beta.ppf(tail)), float(beta.ppf(1 - tail))
