"""The noise of seeds from all strategies together, and what is forecast with it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.racing.samples import Made, runs

from totune.advice.standings import Entrant, find_test_set, gather
from totune.metrics import METRICS
from totune.racing.forecast import forecast
from totune.racing.noise import find_noise
from totune.statistics import Paired
from totune.statistics.paired import Spread


def entrants(made: Made) -> list[Entrant]:
    return gather(made.records, made.arrays, find_test_set(made.arrays), METRICS["accuracy"])[1]


def test_the_variance_is_pooled_and_a_larger_one_is_kept() -> None:
    made = runs("a", [200, 220]) + runs("b", [200, 202, 204]) + runs("c", [300])
    noise = find_noise(entrants(made))
    assert noise is not None
    a, b = ((np.var([200, 220], ddof=1), 1), (np.var([200, 202, 204], ddof=1), 2))
    pooled = (a[0] * a[1] + b[0] * b[1]) / 3 / 2000**2
    assert noise.variances == pytest.approx({"a": a[0] / 2000**2, "b": pooled, "c": pooled})
    assert noise.df == 1.5


def test_what_never_varies_is_not_pooled() -> None:
    noise = find_noise(entrants(runs("a", [200, 220]) + runs("tf-idf", [300, 300])))
    assert noise is not None
    assert noise.variances == pytest.approx({"a": 200 / 2000**2, "tf-idf": 0.0})


def test_nothing_is_known_from_one_seed_each() -> None:
    assert find_noise(entrants(runs("a", [200]) + runs("b", [220]))) is None
    assert find_noise(entrants(runs("tf-idf", [200, 200]) + runs("b", [220]))) is None


def test_without_any_noise_it_is_none_for_certain() -> None:
    noise = find_noise(entrants(runs("a", [200, 200]) + runs("b", [220, 220])))
    assert noise is not None
    assert set(noise.variances.values()) == {0.0}
    assert math.isinf(noise.df)


PAIR = Paired(
    0.02, 0.0, 0.04, 0.5, 0.01, 0.004, Spread(0.004**2, (0.01**2, 0.01**2), (2, 2), 1000, 7.0)
)


def test_chances_are_those_of_simulated_seeds() -> None:
    found = forecast(PAIR, 0.005, seeds=5, df=16.0, level=0.01)
    rng = np.random.default_rng(0)
    truth = 0.02 + rng.normal(size=100_000) * 0.01  # sqrt(2 * 0.01^2 / 2): the flat prior
    rest = truth + rng.normal(size=100_000) * math.sqrt(2 * 0.01**2 / 3)
    final = 0.4 * 0.02 + 0.6 * rest
    reach = replace(PAIR.spread, seed_df=16.0).reach(0.01, (5, 5))
    assert found.worse == pytest.approx((final - reach > 0.005).mean(), abs=0.01)
    assert found.good == pytest.approx((final + reach < 0.005).mean(), abs=0.01)
    assert found.ahead == pytest.approx((final < -0.005).mean(), abs=0.01)


def test_with_no_seed_left_it_is_certain() -> None:
    used_up = replace(PAIR, spread=replace(PAIR.spread, n_seeds=(5, 5)))
    found = forecast(used_up, 0.005, seeds=5, df=16.0, level=0.01)
    assert {found.worse, found.good, found.ahead} <= {0.0, 1.0}


def test_unknown_noise_is_taken_to_be_that_of_the_rows() -> None:
    unknown = Spread(0.02**2, (math.nan, math.nan), (1, 1), 1000)
    known = replace(unknown, seeds=(0.02**2 / 2,) * 2)
    found = [
        forecast(replace(PAIR, spread=spread), 0.005, seeds=5, df=16.0, level=0.01)
        for spread in (unknown, known)
    ]
    assert found[0] == found[1]
    assert 0 < found[0].ahead < 0.5
