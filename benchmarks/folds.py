"""Simulated cross-validation: does the corrected test keep its promise where folds share rows?

    python -m benchmarks.folds

A study has four strategies. Each reads 20 features of its own of the same rows, which have a shared
difficulty, and is a ridge classifier of them; what a seed does is to leave out a share of the
features and a tenth of the training rows (the dev split). The strategies' features are drawn alike,
so their expected accuracies over new data are equal, or differ by what one signal is weaker: the
truth is that of new training rows, new test rows and new seeds. Each study is analysed

- as k-fold cross-validation (`folds`: the package's own variances),
- with repetitions taken for seeds, which forgets that folds share training rows (`as seeds`),
- by the corrected resampled t-test of Nadeau and Bengio (2003) on the differences of single folds
  (`resampled t`),
- on one split with 10% test rows and three seeds (`one split`).
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.common import save
from benchmarks.verdicts import (
    Case,
    Drawn,
    judge,
    reach_of_first,
    row_variances,
    summarise,
    variances,
)
from totune.metrics import METRICS
from totune.statistics import run_variance
from totune.statistics.paired import variance_factor

Floats = NDArray[np.float64]

STRATEGIES, FEATURES = 4, 20
SIGNAL, DIFFICULTY, RIDGE = 1.0, 0.7, 1.0  # accuracy is 70 to 80%
HELD_OUT = 0.1
SEEDS = 3  # of one split
ROWS = (100, 300, 600)


@dataclass(frozen=True)
class Simulation:
    """What studies are drawn from.

    Attributes:
        case: seeds, rows, tolerance and folds, as of `benchmarks.verdicts`.
        left_out: share of the features that a seed leaves out.
        weaker: by how much the signal of all strategies but the first is weaker.
    """

    case: Case
    left_out: float
    weaker: float = 0.0


@dataclass(frozen=True)
class Rows:
    """Rows with the features of every strategy: classes -1 and 1 [N], features [K, N, F]."""

    classes: NDArray[np.int64]
    features: Floats

    @classmethod
    def draw(cls, simulation: Simulation, rng: np.random.Generator) -> "Rows":
        n = simulation.case.rows
        classes = rng.integers(0, 2, n) * 2 - 1
        signal = np.full((STRATEGIES, 1), SIGNAL - simulation.weaker)
        signal[0] = SIGNAL
        along = signal * classes + DIFFICULTY * rng.standard_normal(n)  # [K, N]
        noise = rng.standard_normal((STRATEGIES, n, FEATURES))
        return cls(classes, noise + along[:, :, None] / math.sqrt(FEATURES))

    def right(
        self, test: NDArray[np.bool_], left_out: float, rng: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Whether each strategy, trained on the other rows, gets the test rows right: [K, n]."""
        found = np.empty((STRATEGIES, int(test.sum())), dtype=bool)
        for k in range(STRATEGIES):
            kept = rng.random(FEATURES) >= left_out
            kept[rng.integers(FEATURES)] = True
            train = ~test & (rng.random(len(test)) >= HELD_OUT)
            x, y = self.features[k][train][:, kept], self.classes[train]
            mean, level = x.mean(axis=0), y.mean()
            x = x - mean
            weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ (y - level))
            scores = (self.features[k][test][:, kept] - mean) @ weights + level
            found[k] = (scores > 0) == (self.classes[test] > 0)
        return found


def deal(classes: NDArray[np.int64], folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A fold for each row, from 1, stratified: [N]."""
    order = np.lexsort((rng.random(len(classes)), classes))
    found = np.empty(len(classes), dtype=np.int64)
    found[order] = np.arange(len(classes)) % folds + 1
    return found


def study(
    simulation: Simulation, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """One study: right answers [K, S, N] with their folds [S, N], and those of one split."""
    case, rows = simulation.case, Rows.draw(simulation, rng)
    folds = np.stack([deal(rows.classes, case.folds, rng) for _ in range(case.seeds)])
    right = np.empty((STRATEGIES, case.seeds, case.rows), dtype=bool)
    for seed, own in enumerate(folds):
        for fold in range(1, case.folds + 1):
            right[:, seed, own == fold] = rows.right(own == fold, simulation.left_out, rng)
    test = deal(rows.classes, 10, rng) == 1
    alone = [rows.right(test, simulation.left_out, rng) for _ in range(SEEDS)]
    return right, folds, np.stack(alone, axis=1)


def resampled_t(right: NDArray[np.bool_], folds: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Differences of the first strategy and the others [K - 1], and half of their 95% intervals.

    Nadeau and Bengio's test, whose variance is that between the folds.
    """
    count = int(folds.max())
    masks = [(seed, own == fold) for seed, own in enumerate(folds) for fold in range(1, count + 1)]
    scores = np.stack([right[:, seed, mask].mean(axis=1) for seed, mask in masks])  # [S k, K]
    differences = scores[:, :1] - scores[:, 1:]
    error = differences.var(axis=0, ddof=1) * variance_factor(len(folds), count)
    reach = stats.t.ppf(0.975, len(masks) - 1) * np.sqrt(error)
    return right[0].mean() - right[1:].mean(axis=(1, 2)), reach


def run(simulation: Simulation, studies: int, seed: int = 0) -> dict[str, Any]:
    """The rates of one simulation by each analysis."""
    rng, case, accuracy = np.random.default_rng(seed), simulation.case, METRICS["accuracy"]
    cross, alone, runs, plain = [], [], [], []
    for _ in range(studies):
        right, folds, once = study(simulation, rng)
        cross.append(right)
        alone.append(once)
        ones = np.ones(case.rows, dtype=int)
        found = [run_variance(accuracy, ones, own.astype(int), folds, 2) for own in right]
        runs.append([each.variance for each in found])
        plain.append(resampled_t(right, folds))
    fixed = np.zeros(STRATEGIES, dtype=bool)

    def drawn(found: list[NDArray[np.bool_]], own: Floats | None) -> Drawn:
        scores = np.array([each.mean(axis=-1) for each in found])
        truth = np.broadcast_to(scores.mean(axis=(0, 2)), scores.shape[:2])
        if not simulation.weaker:
            truth = np.zeros(scores.shape[:2])
        return Drawn(truth, truth, scores, np.array([row_variances(r) for r in found]), fixed, own)

    folded, split = drawn(cross, np.array(runs)), drawn(alone, None)
    as_seeds, seeds = replace(folded, runs=None), replace(case, folds=1)
    one = replace(case, folds=1, seeds=SEEDS, rows=alone[0].shape[-1])
    analyses = {
        "folds": (case, folded),
        "as seeds": (seeds, as_seeds),
        "one split": (one, split),
    }
    rates: dict[str, Any] = {
        name: summarise(its, [judge(its, data, data.truth, "moderated")])
        for name, (its, data) in analyses.items()
    }
    for name, (its, data) in analyses.items():
        known = variances(its, data, "moderated")
        reach = reach_of_first(its, data, *known, "moderated")
        rates[name]["half-width of one"] = float(reach.mean())
    gap = folded.truth[:, :1] - folded.truth[:, 1:]
    found = np.array([each[0] for each in plain]), np.array([each[1] for each in plain])
    rates["resampled t"] = {
        "an interval covers": float((np.abs(found[0] - gap) <= found[1]).mean()),
        "half-width of one": float(found[1].mean()),
    }
    return {"simulation": _plain(simulation), "accuracy": float(folded.scores.mean()), **rates}


def _plain(simulation: Simulation) -> dict[str, Any]:
    case = simulation.case
    about = {"rows": case.rows, "repetitions": case.seeds, "folds": case.folds}
    return about | {"left out": simulation.left_out, "weaker": simulation.weaker}


def simulations() -> Iterator[Simulation]:
    """Everything that is simulated."""
    for left_out in (0.0, 0.3):
        for rows in ROWS:
            for repetitions in (2, 3):
                case = Case("equal", repetitions, rows, tolerance=0.0, folds=5)
                yield Simulation(case, left_out)
    for rows in ROWS:
        yield Simulation(Case("equal, 10 folds", 2, rows, tolerance=0.0, folds=10), 0.3)
    for weaker in (0.2, 0.4):
        for rows in ROWS:
            yield Simulation(Case("weaker", 2, rows, folds=5), 0.3, weaker)


def main(studies: int = 500) -> None:
    """Simulates everything and writes results."""
    results = []
    for simulation in simulations():
        results.append(run(simulation, studies))
        about = ", ".join(f"{name} {value}" for name, value in results[-1]["simulation"].items())
        print(f"{about} (accuracy {100 * results[-1]['accuracy']:.1f})", flush=True)
        for name in ("folds", "as seeds", "resampled t", "one split"):
            known = {key: rate for key, rate in results[-1][name].items() if rate is not None}
            print(f"  {name}: " + ", ".join(f"{k} {100 * v:.1f}" for k, v in known.items()))
    print(save("folds", {"studies": studies, "seed": 0, "simulations": results}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500, help="simulated studies of each kind")
    main(parser.parse_args().studies)
