"""A test over examples and seeds: would new rows and new seeds tell the same story?

The interval is difference +- sqrt(t_r^2 V + t_s^2 W), from two sources.

W is the variance over seeds, s_a^2 / S_a + s_b^2 / S_b, with s^2 the variance of single seeds'
scores on this test set and t_s the quantile for its degrees of freedom: seeds are not resampled,
since among 3 to 5 of them a bootstrap loses (n - 1) / n of the variance and knows nothing of the t
quantile. Where a study's strategies are compared, each s^2 is moderated by the others'
(`totune.statistics.moderation`); alone, it is that of these seeds (n - 1), with Welch-Satterthwaite
degrees of freedom. Seeds of a and b count as independent: two strategies share at most the head's
initialisation and the order of the data, and if their scores rise and fall together the interval is
only wider than need be.

V is the variance over rows. Rows are resampled with replacement, the same rows for all seeds
of a and b, so what makes a row hard for both cancels. From the variance of the mean difference
the part is taken off that belongs to single seeds (the bootstrap variance of a seed's distance
from the mean over seeds, over S), since W holds it already; t_r has N - 1 degrees of freedom.
Where words are tagged a row is a sentence; sentences count as independent, those of one document
too.
Where a score is bounded by 1, one row's worth, 1 / N^2, is added, so that strategies which
agree on every row do not pass for equal with certainty (in the spirit of Agresti and Min
2005).

In a cross-validation of k folds a seed is a repetition: S repetitions, each of which predicts every
row once. V is as above, for each row is tested by models that have not seen it. s^2 is the variance
of single runs, of which there are S k (`totune.statistics.folds`), and W is s^2 (1 / (S k) +
1 / (k - 1)), since these runs share training rows (`variance_factor`). Nadeau and Bengio take the
variance between folds for both, which counts the choice of test rows with it, though no two folds
share any: that interval is up to a quarter wider and no safer (docs/verdicts.md).

The quantiles enter before the sum, because Satterthwaite's degrees of freedom for the sum of
a variance known well and one known from 3 seeds come out too high: that interval covered
91.5% in the worst case tried. Guarantee, by simulation: `docs/verdicts.md` for moderated variances
and whole studies. For two strategies alone (accuracy near 85%, 200 and 1,000 rows of shared
difficulty, five kinds of seed noise from none to 3 points, 2,500 draws each;
`tests/unit/test_statistics.py` repeats a part) the 95% interval holds the true difference in 95.1
to 97.8% of draws with 3 seeds, 95.1 to 96.6% with 5 and 95.2 to 97.1% with 10. F1 gives the same
within the simulation's error.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from totune.metrics import Metric, Scorer
from totune.statistics.moderation import SeedVariance
from totune.statistics.samples import Floats, satterthwaite, summary

Some = Floats | float

RESAMPLES = 1000
MOST_SEEDS = 200
MOST_ROWS = 1_000_000  # nobody labels more test rows to settle one comparison
MOST_TIMES_ROWS = 100
_LEAST_LOG_P = -100.0  # 4e-44; a p-value below is told as 0
_CHUNK = 4_000_000  # weights held at once: 32 MB


@dataclass(frozen=True)
class Spread:
    """Where the uncertainty of a difference a - b comes from.

    Attributes:
        examples: the variance, over the choice of test rows, of the difference that endless seeds
            would show.
        seeds: the variance of single seeds' scores on this test set, for a and for b.
        n_seeds: how many seeds a and b have.
        n_examples: how many rows the test set has.
        seed_dfs: the degrees of freedom of `seeds` where they were moderated; None where they are
            the variances (n - 1) of these seeds alone.
        folds: of a cross-validation, where a seed is a repetition of so many runs and `seeds` are
            the variances of single runs; 1 of one split.
    """

    examples: float
    seeds: tuple[float, float]
    n_seeds: tuple[int, int]
    n_examples: int
    seed_dfs: tuple[float, float] | None = None
    folds: int = 1

    @property
    def is_known(self) -> bool:
        """Whether both sides have shown how far seeds move their scores."""
        return min(self.n_seeds) >= 2

    @property
    def df(self) -> float:
        """Degrees of freedom of the whole variance: the harmonic mean of its parts'."""
        if not self.is_known:
            return math.inf
        parts = self.seed_parts()
        seeds, row_df = sum(parts), max(1, self.n_examples - 1)
        inverse = self.examples / row_df + seeds / self._seed_df(parts, self.n_seeds)
        return (self.examples + seeds) / inverse if inverse > 0 else math.inf

    def reach(self, p: float, n_seeds: tuple[float, float] | None = None) -> float:
        """Half the width of the interval of confidence 1 - p, for these or other seeds."""
        counts = self.n_seeds if n_seeds is None else n_seeds
        parts = self.seed_parts(counts)
        row_df = max(1, self.n_examples - 1)
        df = self._seed_df(parts, counts)
        return float(half_width(p, self.examples, row_df, sum(parts), df))

    def seed_parts(self, n_seeds: tuple[float, float] | None = None) -> list[float]:
        """The variances of the mean scores of a and b, for these or other seeds.

        Of a cross-validation more repetitions do not end them: folds share training rows.
        """
        counts = self.n_seeds if n_seeds is None else n_seeds
        return [s * variance_factor(n, self.folds) for s, n in zip(self.seeds, counts, strict=True)]

    def _seed_df(self, parts: Sequence[float], counts: tuple[float, float]) -> float:
        """Of the sum of both sides' variances; seeds that are still to come count too.

        Moderated variances share what they do not know, so their degrees of freedom do not add up
        as Satterthwaite's do: here they are averaged, each with its part of the sum.
        """
        if self.seed_dfs is None:
            return satterthwaite(parts, [n - 1 for n in counts])
        known = zip(parts, self.seed_dfs, counts, self.n_seeds, strict=True)
        each = self.folds
        shares = [part * (df + each * (count - n)) for part, df, count, n in known if part > 0]
        return sum(shares) / sum(parts) if shares else math.inf


def variance_factor(repetitions: float, folds: int) -> float:
    """The variance of a mean over runs, in variances of one run.

    1 / S for S seeds on one split. For S repetitions of k folds, which share training rows,
    1 / (S k) + 1 / (k - 1): the correction of Nadeau and Bengio's resampled t-test (2003), with
    n2 / n1 = 1 / (k - 1) test rows per training row.
    """
    return 1 / (repetitions * folds) + (1 / (folds - 1) if folds > 1 else 0.0)


def half_width(
    p: Floats | float,
    rows: Floats | float,
    row_df: float,
    seeds: Floats | float,
    df: Floats | float,
) -> Floats:
    """sqrt(t_r^2 V + t_s^2 W), half the width of the interval of confidence 1 - p; any shapes."""
    t_rows, t_seeds = special.stdtrit(row_df, p / 2), special.stdtrit(df, p / 2)
    return np.asarray(np.sqrt(t_rows**2 * rows + t_seeds**2 * seeds), dtype=np.float64)


@dataclass(frozen=True)
class Paired:
    """The difference a - b of mean scores, for new examples and new seeds.

    Attributes:
        spread: what the interval is made from.
        limits: the smallest and the largest difference that the score allows; intervals stay
            inside.

    With one seed on a side, `low`, `high`, `p` and `seed_sd` are nan.
    """

    difference: float
    spread: Spread
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def low(self) -> float:
        """The lower end of the 95% interval."""
        return self.interval(0.95)[0]

    @property
    def high(self) -> float:
        """The upper end of the 95% interval."""
        return self.interval(0.95)[1]

    @property
    def p(self) -> float:
        """Two-sided, for no difference."""
        return self.p_value()

    @property
    def seed_sd(self) -> float:
        """How far the seeds at hand move the difference on this test set."""
        if not self.spread.is_known:
            return math.nan
        return math.sqrt(sum(self.spread.seed_parts()))

    @property
    def example_sd(self) -> float:
        """How far the choice of test rows moves the difference."""
        return math.sqrt(self.spread.examples)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The two-sided interval at another confidence, inside the score's scale."""
        if not self.spread.is_known:
            return math.nan, math.nan
        reach = self.spread.reach(1 - confidence)
        low, high = self.limits
        return max(low, self.difference - reach), min(high, self.difference + reach)

    def p_value(self, null: float = 0.0) -> float:
        """The two-sided p-value of "the difference is `null`".

        It is one minus the confidence of the interval that ends at `null`.
        """
        return _p_value(abs(self.difference - null), self.spread)


@dataclass(frozen=True)
class SeedsNeeded:
    """What would narrow an interval enough.

    Attributes:
        seeds: seeds per strategy in all, or None if no number up to the limit is enough.
        examples: where even endless seeds are not enough because the test set is finite: the
            least number of test rows that could be; else None, also where it would be more than a
            million or a hundred times those at hand.
    """

    seeds: int | None
    examples: int | None


def paired_bootstrap(
    metric: Metric,
    targets: NDArray[Any],
    predictions_a: NDArray[Any],
    predictions_b: NDArray[Any],
    n_classes: int | None = None,
    resamples: int | None = None,
    seed: int = 0,
    seeds: tuple[SeedVariance, SeedVariance] | None = None,
    folds: int = 1,
) -> Paired:
    """Compares two strategies over examples and seeds, by the method on top of this module.

    Args:
        metric: how predictions are scored.
        targets: [N], or [N, W] where words are tagged.
        predictions_a: [S_a, N] or [S_a, N, W], one per seed.
        predictions_b: [S_b, N] or [S_b, N, W].
        n_classes: the size of the label space; read from the data if None.
        resamples: bootstrap resamples of the rows; as many as the metric affords if None.
        seed: of the resampling.
        seeds: the moderated variances of a and b; if None, those of their own seeds alone.
        folds: of a cross-validation, whose predictions are one per repetition, and of whose single
            runs `seeds` are the variances.

    Returns:
        The difference in the metric's own direction, with its error; see `Paired`.
    """
    sides = [np.asarray(side) for side in (predictions_a, predictions_b)]
    n = len(targets)
    scorers = [metric.scorer(targets, side, n_classes) for side in sides]
    once = [score(np.ones((1, n)))[:, 0] for score in scorers]
    drawn = _resampled(scorers, n, resamples or metric.resamples, seed)
    one_row = 1 / n**2 if metric.unit == "points" else 0.0
    own = summary(once[0]).std ** 2, summary(once[1]).std ** 2
    spread = Spread(
        examples=_row_variance(*drawn) * n / max(1, n - 1) + one_row,  # a bootstrap loses 1 / n
        seeds=own if seeds is None else (seeds[0].variance, seeds[1].variance),
        n_seeds=(len(sides[0]), len(sides[1])),
        n_examples=n,
        seed_dfs=None if seeds is None else (seeds[0].df, seeds[1].df),
        folds=folds,
    )
    lowest, highest = metric.scale
    width = highest - lowest
    return Paired(float(once[0].mean() - once[1].mean()), spread, (-width, width))


def seeds_needed(
    paired: Paired, margin: float, confidence: float = 0.95, most: int = MOST_SEEDS
) -> SeedsNeeded:
    """How many seeds per strategy would bring the interval's half-width below `margin`.

    Supposes that variances stay as they are; a forecast, not a promise. A strategy that has more
    seeds already keeps them.

    Args:
        paired: what is known so far (at least two seeds a side).
        margin: how far the difference lies from what it must be told apart from.
        confidence: of the interval.
        most: the largest number of seeds worth thinking of.
    """
    spread, p = paired.spread, 1 - confidence
    floor = spread.reach(p, (math.inf, math.inf))
    if margin <= 0 or not spread.is_known:
        return SeedsNeeded(None, None)
    if floor >= margin:
        rows = spread.n_examples * (floor / margin) ** 2 + 1
        within = rows <= min(MOST_ROWS, MOST_TIMES_ROWS * spread.n_examples)
        return SeedsNeeded(None, math.ceil(rows) if within else None)
    for n in range(min(spread.n_seeds), most + 1):
        if spread.reach(p, (max(n, spread.n_seeds[0]), max(n, spread.n_seeds[1]))) < margin:
            return SeedsNeeded(n, None)
    return SeedsNeeded(None, None)


def _p_value(gap: float, spread: Spread) -> float:
    """The p at which the interval reaches exactly `gap` far; found by bisection on log p."""
    if math.isnan(gap) or not spread.is_known:
        return math.nan
    if gap == 0:
        return 1.0
    if spread.reach(math.exp(_LEAST_LOG_P)) <= gap:
        return 0.0
    return math.exp(optimize.brentq(lambda x: spread.reach(math.exp(x)) - gap, _LEAST_LOG_P, 0.0))


def _resampled(scorers: Sequence[Scorer], n_rows: int, resamples: int, seed: int) -> list[Floats]:
    """The scores [S, R] of each side on the same resamples of the rows."""
    parts: list[list[Floats]] = [[] for _ in scorers]
    for weights in _weights(n_rows, resamples, seed):
        for score, found in zip(scorers, parts, strict=True):
            found.append(score(weights))
    return [np.concatenate(found, axis=1) for found in parts]


def _weights(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of `n` rows is in each resample, [chunk, n] at a time."""
    rng = np.random.default_rng(seed)
    size = max(1, _CHUNK // n)
    for start in range(0, resamples, size):
        chunk = min(size, resamples - start)
        rows = rng.integers(0, n, size=(chunk, n)) + n * np.arange(chunk)[:, None]
        counts = np.bincount(rows.ravel(), minlength=chunk * n)
        yield counts.reshape(chunk, n).astype(np.float64)


def _row_variance(a: Floats, b: Floats) -> float:
    """The bootstrap variance of mean a - mean b, less what single seeds bring: from [S, R]."""
    between = float((a.mean(axis=0) - b.mean(axis=0)).var(ddof=1))
    return max(0.0, between - _single_seeds(a) - _single_seeds(b))


def _single_seeds(scores: Floats) -> float:
    """The part of the bootstrap variance of a mean over seeds [S, R] that more seeds would end."""
    seeds = len(scores)
    if seeds < 2:
        return 0.0
    apart = scores - scores.mean(axis=0)
    return float(apart.var(axis=1, ddof=1).sum() / (seeds - 1) / seeds)
