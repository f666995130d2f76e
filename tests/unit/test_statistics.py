import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from totune.metrics import METRICS, PADDING
from totune.statistics import (
    FIXED,
    SeedVariance,
    cohens_d,
    hedges_g,
    holm,
    paired,
    paired_bootstrap,
    paired_dz,
    paired_permutation,
    seeds_needed,
    summary,
    welch,
)

ACCURACY = METRICS["accuracy"]
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)
scores = st.lists(st.integers(0, 1000).map(lambda k: k / 1000), min_size=2, max_size=8)


def test_summary_of_one_value_has_no_spread():
    found = summary([0.8])
    assert (found.mean, found.n) == (0.8, 1)
    assert all(math.isnan(value) for value in (found.std, found.low, found.high))


def test_summary_of_no_value_is_refused():
    with pytest.raises(ValueError, match="at least one number"):
        summary([])


def test_summary_does_not_take_rounding_for_spread():
    assert summary([0.1 + 0.2, 0.3, 0.3]).std == 0.0


@given(scores, scores)
def test_welch_mirrors(a: list[float], b: list[float]):
    one, other = welch(a, b), welch(b, a)
    assert one.p == pytest.approx(other.p)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_welch_without_spread():
    assert welch([0.8, 0.8], [0.8, 0.8]).p == 1.0
    apart = welch([0.9, 0.9], [0.8, 0.8])
    assert (apart.p, apart.t) == (0.0, math.inf)
    assert (apart.low, apart.high) == pytest.approx((0.1, 0.1))
    assert math.isnan(welch([0.9], [0.8, 0.7]).p)


def test_permutation_sees_ties_through_rounding():
    # Every score has 4 decimals; patterns that tie exactly differ by rounding in float64.
    a = np.array([0.8123, 0.8125, 0.8121, 0.8127, 0.8119, 0.8124])
    b = np.array([0.8121, 0.8127, 0.8119, 0.8125, 0.8121, 0.8122])
    whole = np.round((a - b) * 10_000).astype(int)  # exact: every one is +-2
    signs = 1 - 2 * ((np.arange(64)[:, None] >> np.arange(6)) & 1)
    share = float((signs @ whole >= whole.sum()).mean())
    assert paired_permutation(a, b, "greater").p == share


def test_five_pairs_cannot_reach_five_percent():
    assert paired_permutation([5, 6, 7, 8, 9], [0, 0, 0, 0, 0]).p == 2 / 32


def test_permutation_of_many_pairs_is_drawn_and_never_zero():
    rng = np.random.default_rng(0)
    a, noise = rng.normal(size=40), rng.normal(size=40)
    sure = paired_permutation(a + 5, a)
    assert not sure.exact
    assert sure.p == pytest.approx(2 / 20_001)
    unsure = paired_permutation(a, a + noise * 0.1)
    assert unsure.p == pytest.approx(stats.ttest_1samp(noise, 0).pvalue, abs=0.03)
    assert unsure == paired_permutation(a, a + noise * 0.1)


def test_permutation_needs_pairs():
    with pytest.raises(ValueError, match="two equal lists"):
        paired_permutation([1.0, 2.0], [1.0])


@given(p_values)
def test_holm_keeps_order_and_lies_between_raw_and_bonferroni(p: list[float]):
    raw, adjusted = np.array(p), holm(p)
    order = np.argsort(raw, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    assert (adjusted >= raw).all()
    assert (adjusted <= np.minimum(1, raw * len(p)) + 1e-15).all()


@given(p_values, st.randoms())
def test_holm_does_not_depend_on_the_order(p: list[float], random):
    order = random.sample(range(len(p)), len(p))
    np.testing.assert_allclose(holm(np.array(p)[order]), holm(p)[order])


def test_holm_refuses_what_is_no_p_value():
    with pytest.raises(ValueError, match="lie in"):
        holm([0.1, math.nan])


def test_effect_sizes():
    a, b = [2.0, 4.0, 6.0], [1.0, 3.0, 5.0]
    assert cohens_d(a, b) == pytest.approx(0.5)
    exact = math.gamma(2) / (math.sqrt(2) * math.gamma(1.5))  # Hedges' J for 4 degrees of freedom
    assert hedges_g(a, b) == pytest.approx(0.5 * exact)
    assert paired_dz([2.0, 4.0, 9.0], [1.0, 3.0, 5.0]) == pytest.approx(2 / math.sqrt(3))
    assert paired_dz(a, b) == math.inf
    assert math.isnan(hedges_g([1.0], b))
    assert cohens_d([1.0, 1.0], [1.0, 1.0]) == 0.0


def answers(
    rng: np.random.Generator, ease: np.ndarray, seeds: int, seed_sd: float, noise: float
) -> np.ndarray:
    """Predictions [S, N] of targets that are all 1: rows vary, seeds vary, and both together."""
    rows = ease + rng.normal(0, 0.5, len(ease))
    moves = rng.normal(0, 1, (seeds, 1)) * seed_sd
    return (rows + moves + rng.normal(0, 1, (seeds, len(ease))) * noise > 0).astype(int)


def draw(seed: int, seeds: int, rows: int, seed_sd: float, noise: float) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1, rows)
    return [
        answers(rng, ease + 1.3, seeds, seed_sd, noise),
        answers(rng, ease + 1.2, seeds, seed_sd / 2, noise),
    ]


def truth(seed_sd: float, noise: float) -> float:
    def share(mean: float, sd: float) -> float:
        return float(stats.norm.cdf(mean / math.sqrt(1.25 + sd**2 + noise**2)))

    return share(1.3, seed_sd) - share(1.2, seed_sd / 2)


@cache
def example():
    a, b = draw(1, 4, 300, 0.15, 0.5)
    return a, b, paired_bootstrap(ACCURACY, np.ones(300, int), a, b, 2)


def test_the_difference_is_that_of_the_means_and_mirrors():
    a, b, found = example()
    assert found.difference == pytest.approx(a.mean() - b.mean())
    mirrored = paired_bootstrap(ACCURACY, np.ones(300, int), b, a, 2)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
    assert mirrored.p == pytest.approx(found.p)


def test_the_order_of_seeds_does_not_matter():
    a, b, found = example()
    shuffled = paired_bootstrap(ACCURACY, np.ones(300, int), a[::-1], b[[2, 0, 3, 1]], 2)
    assert (shuffled.low, shuffled.high, shuffled.p) == pytest.approx(
        (found.low, found.high, found.p)
    )


def test_p_is_one_minus_the_confidence_of_the_interval_that_ends_there():
    *_, found = example()
    for null in (-0.01, 0.0, 0.005, found.high):
        low, high = found.interval(1 - found.p_value(null))
        assert min(abs(low - null), abs(high - null)) < 1e-9
    assert found.p_value(found.high) == pytest.approx(0.05)
    assert found.p_value(found.difference) == 1.0


def test_without_seed_variance_the_interval_is_that_of_the_rows():
    rng = np.random.default_rng(0)
    a, b = (np.tile(rng.random(500) < share, (3, 1)).astype(int) for share in (0.85, 0.8))
    found = paired_bootstrap(ACCURACY, np.ones(500, int), a, b, 2, resamples=20_000)
    rows = (a[0] - b[0]).var(ddof=1) / 500 + 1 / 500**2
    assert found.seed_sd == 0.0
    assert found.example_sd == pytest.approx(math.sqrt(rows), rel=0.02)


def test_with_endless_rows_the_interval_is_welchs():
    shares = [[0.80, 0.82, 0.84], [0.79, 0.80, 0.80]]
    targets = np.ones(100_000, int)
    a, b = (
        np.stack([(np.arange(100_000) % 1000 < 1000 * share).astype(int) for share in side])
        for side in shares
    )
    found, seeds = paired_bootstrap(ACCURACY, targets, a, b, 2, resamples=100), welch(*shares)
    assert (found.low, found.high) == pytest.approx((seeds.low, seeds.high), abs=2e-3)


def test_strategies_that_agree_on_every_row_are_not_equal_with_certainty():
    same = np.tile(np.arange(20) % 4 > 0, (3, 1)).astype(int)
    found = paired_bootstrap(ACCURACY, np.ones(20, int), same, same, 2)
    assert found.p == 1.0
    assert found.high == pytest.approx(stats.t.ppf(0.975, 19) / 20)


def test_errors_have_no_such_floor():
    same = np.tile(np.arange(20.0), (2, 1))
    found = paired_bootstrap(METRICS["mse"], np.zeros(20), same, same)
    assert (found.low, found.high, found.p) == (0.0, 0.0, 1.0)
    assert found.p_value(0.1) == 0.0


def test_one_seed_leaves_the_interval_unknown():
    a, b, _ = example()
    found = paired_bootstrap(ACCURACY, np.ones(300, int), a[:1], b, 2)
    assert math.isnan(found.low)
    assert math.isnan(found.p)
    assert math.isnan(found.p_value(0.01))
    assert found.example_sd > 0
    assert seeds_needed(found, 0.01).seeds is None


def test_one_row_does_not_crash():
    one = np.ones((2, 1), int)
    assert paired_bootstrap(ACCURACY, np.ones(1, int), one, one, 2).p == 1.0


def test_seeds_needed_is_the_least_number_that_narrows_the_interval_enough():
    *_, found = example()
    margin = 0.7 * (found.high - found.difference)
    needed = seeds_needed(found, margin)
    assert needed.examples is None
    assert needed.seeds is not None
    assert needed.seeds > 4
    assert found.spread.reach(0.05, (needed.seeds, needed.seeds)) < margin
    assert found.spread.reach(0.05, (needed.seeds - 1, needed.seeds - 1)) >= margin


def test_seeds_cannot_outdo_a_finite_test_set():
    *_, found = example()
    margin = found.example_sd  # the rows alone reach 1.97 times as far
    needed = seeds_needed(found, margin)
    assert needed.seeds is None
    assert needed.examples == pytest.approx(300 * 1.968**2, rel=0.01)


def test_no_number_of_seeds_tells_a_difference_of_nothing():
    *_, found = example()
    assert seeds_needed(found, 0.0) == seeds_needed(found, -1.0)
    assert seeds_needed(found, 0.0).seeds is None


@pytest.mark.parametrize("margin", [1e-9, 0.0009])
def test_nobody_is_sent_for_more_rows_than_there_are(margin: float):
    """A difference next to the tolerance asked for 8,099,015,412,025,660,750,646,046,883,841."""
    *_, found = example()
    assert seeds_needed(found, margin) == seeds_needed(found, 0.0)
    near = seeds_needed(found, found.example_sd / 2).examples
    assert near is not None
    assert 300 < near <= 100 * 300


def test_a_difference_stays_inside_the_scale():
    none, full = np.zeros((2, 5), int), np.ones((2, 5), int)
    full[0, :2] = 0
    found = paired_bootstrap(ACCURACY, np.ones(5, int), full, none, 2)
    assert found.difference + found.spread.reach(0.05) > 1
    assert found.high == 1.0
    assert paired_bootstrap(METRICS["mse"], np.ones(5), 9.0 * full, none).high > 1


def test_moderated_variances_take_the_place_of_own_ones():
    a, b, own = example()
    seeds = SeedVariance(0.02**2, 6.0), FIXED
    found = paired_bootstrap(ACCURACY, np.ones(300, int), a, b, 2, seeds=seeds)
    assert found.spread.examples == own.spread.examples
    expected = math.sqrt(
        stats.t.ppf(0.975, 299) ** 2 * found.spread.examples
        + stats.t.ppf(0.975, 6) ** 2 * 0.02**2 / 4
    )
    assert found.high - found.difference == pytest.approx(expected)
    more = stats.t.ppf(0.975, 16) ** 2 * 0.02**2 / 14  # ten seeds more are ten degrees more
    rows = stats.t.ppf(0.975, 299) ** 2 * found.spread.examples
    assert found.spread.reach(0.05, (14, 14)) == pytest.approx(math.sqrt(rows + more))


def coverage(seeds: int, rows: int, seed_sd: float, noise: float, repeats: int) -> float:
    expected, targets, held = truth(seed_sd, noise), np.ones(rows, int), 0
    for repeat in range(repeats):
        a, b = draw(repeat, seeds, rows, seed_sd, noise)
        found = paired_bootstrap(ACCURACY, targets, a, b, 2, resamples=300, seed=repeat)
        held += found.low <= expected <= found.high
    return held / repeats


def test_the_interval_holds_the_truth_as_often_as_it_says():
    assert 0.91 <= coverage(3, 200, 0.15, 0.5, 250) <= 0.995


@pytest.mark.slow
@pytest.mark.parametrize("rows", [200, 1000])
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("seed_sd", [0.0, 0.06, 0.2])  # none, about 1 point, about 3 points
def test_coverage(seeds: int, rows: int, seed_sd: float):
    # With 600 repeats the simulation itself errs by about 0.8 points.
    assert 0.935 <= coverage(seeds, rows, seed_sd, 0.5, 600) <= 0.99


def tagged_answers(seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of 300 sentences [N, W], and two strategies' predictions [S, N, W] of them."""
    rng = np.random.default_rng(0)
    words = np.arange(12) < rng.integers(1, 13, (300, 1))
    targets = np.where(rng.random((300, 12)) < 0.3, rng.integers(1, 9, (300, 12)), 0)
    a, b = (np.where(rng.random((seeds, 300, 12)) < share, targets, 0) for share in (0.95, 0.85))
    return tuple(np.where(words, side, PADDING).astype(np.int16) for side in (targets, a, b))


@pytest.mark.parametrize("name", ["span-f1", "token-accuracy", "token-f1"])
def test_where_words_are_tagged_sentences_are_resampled(name: str):
    metric, (targets, a, b) = METRICS[name], tagged_answers(1)
    same = [np.repeat(side, 2, axis=0) for side in (a, b)]  # two seeds that do not differ
    found = paired_bootstrap(metric, targets, *same, resamples=4000)
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(300):
        rows = rng.integers(0, 300, 300)
        differences.append(metric(targets[rows], a[0, rows]) - metric(targets[rows], b[0, rows]))
    assert found.difference == pytest.approx(metric(targets, a[0]) - metric(targets, b[0]))
    assert found.seed_sd == 0.0
    one_sentence = 1 / 300  # what is added where a score is bounded
    expected = math.hypot(np.std(differences), one_sentence)
    assert found.example_sd == pytest.approx(expected, rel=0.12)
    assert found.spread.n_examples == 300


def test_chunks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch):
    targets, a, b = tagged_answers(3)
    whole = paired_bootstrap(METRICS["span-f1"], targets, a, b, resamples=50)
    monkeypatch.setattr(paired, "_CHUNK", 300 * 50)
    again = paired_bootstrap(METRICS["span-f1"], targets, a, b, resamples=50)
    assert (again.low, again.high) == (whole.low, whole.high)
