import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from totune.metrics import METRICS
from totune.statistics import moderate, moderated_summaries, summary
from totune.statistics.moderation import _LEVEL_SD, _PRIOR_DFS


def test_the_posterior_is_that_of_plain_integration():
    s2, d, level = [0.4, 3.0], [1, 2], 0.8

    def moments(at: int) -> tuple[float, float]:
        """Mean and variance of log sigma^2, each strategy's sigma^2 drawn given d0 and s0^2."""
        sums = np.zeros(3)
        for d0 in _PRIOR_DFS:
            scaled = [stats.f(n, d0) for n in d]

            def weight(x: float, scaled=scaled) -> float:
                prior = stats.norm.pdf(x, math.log(level), _LEVEL_SD)
                each = (
                    f.pdf(v / math.exp(x)) / math.exp(x) for f, v in zip(scaled, s2, strict=True)
                )
                return prior * math.prod(each)

            def posterior(x: float, d0=d0) -> tuple[float, float]:
                shape, scale = (d0 + d[at]) / 2, (d0 * math.exp(x) + d[at] * s2[at]) / 2
                mean = math.log(scale) - special.digamma(shape)
                return mean, special.polygamma(1, shape) + mean**2

            for power in range(3):
                value = (lambda x: weight(x)) if not power else None
                value = value or (lambda x, k=power - 1: weight(x) * posterior(x)[k])
                sums[power] += integrate.quad(value, -15, 15, limit=200)[0]
        mean = sums[1] / sums[0]
        return mean, sums[2] / sums[0] - mean**2

    variances, dfs = moderate(s2, d, level)
    for at in range(2):
        mean, spread = moments(at)
        half = dfs[at] / 2
        assert special.polygamma(1, half) == pytest.approx(spread, rel=1e-3)
        log_mean = math.log(variances[at] * half) - special.digamma(half)
        assert log_mean == pytest.approx(mean, abs=1e-3)


def test_of_many_variances_it_is_smyths():
    """Smyth 2004, section 6.2: d0 and s0^2 from the moments of log s^2."""
    rng, k, d, d0, s0 = np.random.default_rng(0), 4000, 3, 4.0, 0.5
    s2 = s0 * rng.f(d, d0, size=k)
    e = np.log(s2) - special.digamma(d / 2) + math.log(d / 2)
    excess = e.var(ddof=1) - special.polygamma(1, d / 2)
    grid = np.linspace(0.5, 20, 20_000)
    prior_df = float(grid[np.abs(special.polygamma(1, grid / 2) - excess).argmin()])
    prior = math.exp(e.mean() + special.digamma(prior_df / 2) - math.log(prior_df / 2))
    squeezed = (prior_df * prior + d * s2) / (prior_df + d)
    variances, dfs = moderate(s2, [d] * k)
    assert prior_df == pytest.approx(d0, rel=0.1)
    np.testing.assert_allclose(variances, squeezed, rtol=0.1)
    np.testing.assert_allclose(dfs, d0 + d, rtol=0.1)


def test_an_outlier_is_not_squeezed_and_moves_the_others_little():
    """A run of three that collapsed: the others' variances stay near their own."""
    alone, _ = moderate([0.5, 0.7, 0.6], [2] * 3)
    (a, b, c, out), dfs = moderate([0.5, 0.7, 0.6, 300.0], [2] * 4)
    assert out > 150
    assert dfs[3] < 4
    assert [a, b, c] == pytest.approx(list(alone), rel=0.35)


def test_more_seeds_are_worth_more_than_the_others():
    few, many = (moderate([4.0, 1.0, 1.0], [n, 2, 2]) for n in (1, 50))
    assert abs(many[0][0] - 4.0) < 0.3 < abs(few[0][0] - 4.0)
    assert many[1][0] > 50


def test_studies_may_be_moderated_together():
    s2 = np.array([[0.1, 0.4], [3.0, 0.0]])
    both = moderate(s2, [2, 1], 0.5)
    one = moderate(s2[1], [2, 1], 0.5)
    np.testing.assert_allclose(np.array(both)[:, 1], np.array(one), rtol=1e-12)


def test_without_any_variance_there_is_none():
    variances, dfs = moderate([0.0, 0.0], [1, 1])
    assert list(variances) == [0.0, 0.0]
    assert np.isinf(dfs).all()
    assert [len(each) for each in moderate([], [], 0.5)] == [0, 0]


def test_intervals_of_means_stay_inside_the_scale_and_off_nonsense():
    """The two seeds of one strategy came to 84.4 to 104.8 points."""
    accuracy = METRICS["accuracy"]
    samples = [[0.938, 0.954], [0.93, 0.936], [0.9, 0.91], [0.995, 1.0], [0.8, 0.8], [0.7]]
    assert summary(samples[0]).high > 1
    found = moderated_summaries(samples, accuracy, 200)
    assert [one.mean for one in found] == pytest.approx([np.mean(each) for each in samples])
    assert all(0.01 < one.high - one.low < 0.15 for one in found[:4])
    assert found[3].high == 1.0
    assert (found[4].low, found[4].high) == (0.8, 0.8)
    assert math.isnan(found[5].low)
    moved = moderated_summaries(samples, accuracy, 200, fixed=[False] * 6)
    assert moved[4].high - moved[4].low > 0.01


def test_an_error_has_no_usual_size():
    mse = METRICS["mse"]
    one, thousand = (
        moderated_summaries([[0.3 * f, 0.31 * f], [0.5 * f, 0.52 * f]], mse, 900) for f in (1, 1000)
    )
    assert [s.high / 1000 for s in thousand] == pytest.approx([s.high for s in one])
