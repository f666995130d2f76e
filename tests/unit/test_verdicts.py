"""The simulation of `benchmarks/verdicts.py`: it draws what it says, and repeats a part."""

import numpy as np
import pytest
from benchmarks.verdicts import Case, race, row_variances, run

from totune.metrics import METRICS
from totune.statistics import paired_bootstrap


def test_the_variance_over_rows_is_what_the_bootstrap_expects() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(size=400)
    right = hard + 0.7 * rng.normal(size=(3, 4, 400)) > -1.0
    found = row_variances(right)
    a, b = right[0].astype(int), right[2].astype(int)
    pair = paired_bootstrap(METRICS["accuracy"], np.ones(400, int), a, b, 2, resamples=20_000)
    assert found[0, 2] == pytest.approx(pair.spread.examples, rel=0.04)
    assert found == pytest.approx(found.T)


@pytest.mark.parametrize("seeds", [2, 3])
def test_little_is_found_wrongly_in_studies(seeds: int) -> None:
    # With the promised 5%, eleven or more errors in 100 studies come up in 1 of 100 such tests.
    found = run(Case("equal", seeds, 200, tolerance=0.0), studies=100)["moderated"]
    assert found["wrongly worse"] <= 0.1
    assert found["all intervals cover"] >= 0.9
    assert 0.9 <= found["an interval covers"] <= 1


def test_moderated_variances_find_more_than_own_ones() -> None:
    found = run(Case("far behind", 2, 1000, gap=0.1), studies=50)
    assert found["moderated"]["rightly worse"] > found["own"]["rightly worse"] + 0.2


def test_little_is_found_wrongly_in_races() -> None:
    found = race(Case("equal", 5, 200, tolerance=0.0, analyses=4), studies=50)["moderated"]
    assert found["wrongly worse"] <= 0.14


def test_collapses_take_their_part_of_the_mean() -> None:
    same = Case("same", 3, 50, collapsing=1.0, same_means=True)
    found = run(same, studies=25)
    assert set(found) > {"own", "moderated, of runs that do not collapse"}
