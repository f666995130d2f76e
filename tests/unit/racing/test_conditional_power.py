"""What the seeds that are left may bring."""

import math
from dataclasses import replace

import numpy as np
import pytest

from totune.racing.rules import conditional_power
from totune.statistics import Paired
from totune.statistics.paired import Spread

PAIR = Paired(0.02, Spread(0.004**2, (0.01**2, 0.01**2), (2, 2), 1000, (7.0, 7.0)))


def test_chances_are_those_of_simulated_seeds() -> None:
    found = conditional_power(PAIR, 0.005, seeds=5, level=0.01)
    rng = np.random.default_rng(0)
    truth = 0.02 + rng.normal(size=100_000) * 0.01  # sqrt(2 * 0.01^2 / 2): the flat prior
    rest = truth + rng.normal(size=100_000) * math.sqrt(2 * 0.01**2 / 3)
    final = 0.4 * 0.02 + 0.6 * rest
    reach = PAIR.spread.reach(0.01, (5, 5))
    assert found.worse == pytest.approx((final - reach > 0.005).mean(), abs=0.01)
    assert found.good == pytest.approx((final + reach < 0.005).mean(), abs=0.01)
    assert found.ahead == pytest.approx((final < -0.005).mean(), abs=0.01)


def test_with_no_seed_left_it_is_certain() -> None:
    used_up = replace(PAIR, spread=replace(PAIR.spread, n_seeds=(5, 5)))
    found = conditional_power(used_up, 0.005, seeds=5, level=0.01)
    assert {found.worse, found.good, found.ahead} <= {0.0, 1.0}


def test_unknown_noise_is_taken_to_be_that_of_the_rows() -> None:
    unknown = Spread(0.02**2, (math.nan, math.nan), (1, 1), 1000)
    known = replace(unknown, seeds=(0.02**2 / 2,) * 2)
    found = [
        conditional_power(replace(PAIR, spread=spread), 0.005, seeds=5, level=0.01)
        for spread in (unknown, known)
    ]
    assert found[0] == found[1]
    assert 0 < found[0].ahead < 0.5
