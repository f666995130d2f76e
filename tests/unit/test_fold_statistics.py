"""What a cross-validation's test rests on: the variance of runs, and the factor for shared rows."""

import math

import numpy as np
import pytest
from benchmarks.folds import Simulation, run
from benchmarks.verdicts import Case

from totune.metrics import METRICS
from totune.statistics import SeedVariance, paired_bootstrap, run_variance, seeds_needed
from totune.statistics.paired import Spread, variance_factor

ACCURACY = METRICS["accuracy"]


def drawn(
    rows: int, repetitions: int, folds: int, sd: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions [S, N] of runs whose expected accuracy has this standard deviation; folds."""
    dealt = np.stack([rng.permutation(np.arange(rows) % folds + 1) for _ in range(repetitions)])
    levels = 0.7 + sd * rng.standard_normal((repetitions, folds + 1))
    hard = rng.random(rows) * 0.2 - 0.1  # a difficulty that all runs share
    chance = np.take_along_axis(levels, dealt, axis=1) + hard
    return (rng.random((repetitions, rows)) < chance).astype(int), dealt


def test_the_factor_is_that_of_nadeau_and_bengio() -> None:
    assert variance_factor(3, 1) == 1 / 3
    assert variance_factor(2, 5) == pytest.approx(1 / 10 + 1 / 4)
    assert variance_factor(math.inf, 5) == 0.25


def test_the_variance_of_runs_leaves_the_rows_difficulty_out() -> None:
    rng = np.random.default_rng(0)
    rows, sd = 500, 0.05
    ones = np.ones(rows, dtype=int)
    found = [run_variance(ACCURACY, ones, *drawn(rows, 3, 5, sd, rng), 2) for _ in range(100)]
    of_rows = 0.2 / (rows / 5)  # what chance adds: about p (1 - p) per row
    assert np.mean([each.variance for each in found]) == pytest.approx(sd**2 + of_rows, rel=0.25)
    assert found[0].df == 10
    same = np.ones((2, rows), dtype=int)
    assert run_variance(ACCURACY, ones, same, drawn(rows, 2, 5, sd, rng)[1], 2).variance == 0


def test_more_repetitions_do_not_end_what_shared_rows_leave() -> None:
    rng = np.random.default_rng(1)
    a, b = (drawn(300, 2, 5, 0.02, rng)[0] for _ in range(2))
    seeds = SeedVariance(0.02**2, 10), SeedVariance(0.02**2, 10)
    ones = np.ones(300, dtype=int)
    found = paired_bootstrap(ACCURACY, ones, a, b, 2, seeds=seeds, folds=5)
    parts = found.spread.seed_parts((math.inf, math.inf))
    assert parts == pytest.approx([0.02**2 / 4] * 2)
    single = paired_bootstrap(ACCURACY, ones, a, b, 2, seeds=seeds)
    assert single.spread.reach(0.05) > found.spread.reach(0.05)  # as seeds, 1 / 2 for .35
    assert seeds_needed(found, 0.001).seeds is None


def test_one_split_is_as_before() -> None:
    spread = Spread(0.01**2, (0.01**2, 0.02**2), (3, 3), 200, (6.0, 6.0))
    assert spread.seed_parts() == pytest.approx([0.01**2 / 3, 0.02**2 / 3])


@pytest.mark.slow
def test_intervals_cover_where_learners_share_their_rows() -> None:
    case = Case("equal", 2, 100, tolerance=0.0, folds=5)
    rates = run(Simulation(case, left_out=0.0), studies=100)
    assert rates["folds"]["an interval covers"] > 0.93
    assert rates["folds"]["wrongly worse"] < 0.06
    assert rates["folds"]["half-width"] < rates["one split"]["half-width"]
