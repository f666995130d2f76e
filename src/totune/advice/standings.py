"""Where each strategy stands: its scored runs, their scores and what they cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.errors import DataError
from totune.metrics import Metric
from totune.runs.records import Costs, RunRecord
from totune.statistics import Summary, moderated_summaries

# per run fingerprint: targets [N], predictions [N] and, for classes, scores [N, C]; targets and
# predictions are [N, W] where words are tagged
Arrays = Mapping[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class Standing:
    """One strategy in numbers; scores in the metric's own scale, over scored runs.

    Attributes:
        runs: number of runs, scored or not.
        failed: runs that ended with an error.
        degenerate: scored runs that give one answer; they count in the mean like any other.
        unscored: finished runs without finite test predictions.
        seeds: scored runs.
        mean: nan without a scored run.
        std: over seeds (n - 1); nan for fewer than two.
        low: lower end of the 95% interval of the mean over seeds on this test set, from variances
            that all strategies inform (`totune.statistics.moderation`); nan for fewer than two.
        high: its upper end.
        fixed: whether all scored runs give the same predictions.
        seconds: mean seconds per run, features included; infinite if not recorded.
        storage_bytes: mean bytes to store per task; infinite if not recorded.
        trouble: the first message of a failed or degenerate run, or "".
    """

    strategy: str
    runs: int
    failed: int
    degenerate: int
    unscored: int
    seeds: int
    mean: float
    std: float
    low: float
    high: float
    fixed: bool
    seconds: float
    storage_bytes: float
    trouble: str

    @property
    def cost(self) -> tuple[float, float, str]:
        """What strategies are ordered by: time, then storage, then name."""
        return self.seconds, self.storage_bytes, self.strategy


@dataclass(frozen=True)
class Entrant:
    """A strategy with usable runs: scores [S] and predictions [S, N] or [S, N, W], one per seed."""

    standing: Standing
    scores: tuple[float, ...]
    predictions: NDArray[Any]

    @property
    def strategy(self) -> str:
        return self.standing.strategy

    @property
    def is_constant(self) -> bool:
        """Whether every run gives all rows one answer."""
        answers = self.predictions.reshape(len(self.predictions), -1)
        same = bool((answers == answers[:, :1]).all())
        return same or self.standing.degenerate == self.standing.seeds


@dataclass(frozen=True)
class TestSet:
    """The rows all runs are scored on: targets [N] or [N, W], the number of classes if known."""

    targets: NDArray[Any]
    n_classes: int | None


def find_test_set(arrays: Arrays) -> TestSet:
    """The test set that all runs share.

    Raises:
        DataError: if two runs were scored on different rows.
    """
    found = [run for run in arrays.values() if "targets" in run]
    if not found:
        return TestSet(np.zeros(0), None)
    targets = found[0]["targets"]
    if not all(np.array_equal(targets, run["targets"]) for run in found):
        raise DataError(
            "The runs of this study were scored on different test rows, so they cannot be "
            "compared. Compare into a new folder."
        )
    scores = next((run["scores"] for run in found if "scores" in run), None)
    return TestSet(targets, None if scores is None else scores.shape[-1])


def gather(
    records: Sequence[RunRecord], arrays: Arrays, test: TestSet, metric: Metric
) -> tuple[list[Standing], list[Entrant]]:
    """Every strategy's standing, by name, and those that can be compared."""
    ordered = sorted(records, key=lambda run: (run.strategy, run.seed, run.fingerprint))
    by_name: dict[str, list[RunRecord]] = {}
    for record in ordered:
        by_name.setdefault(record.strategy, []).append(record)
    predictions, scores = {}, {}
    for name, runs in by_name.items():
        found = [arrays[run.fingerprint]["predictions"] for run in runs if is_usable(run, arrays)]
        if found:
            predictions[name] = np.stack(found)
            scores[name] = [metric(test.targets, one, test.n_classes) for one in found]
    fixed = {name: bool((found == found[:1]).all()) for name, found in predictions.items()}
    samples, still = list(scores.values()), list(fixed.values())
    summaries = moderated_summaries(samples, metric, len(test.targets), still)
    told = dict(zip(scores, summaries, strict=True))
    standings = {
        name: _standing(name, runs, arrays, told.get(name), fixed.get(name, False))
        for name, runs in by_name.items()
    }
    entrants = [Entrant(standings[name], tuple(scores[name]), predictions[name]) for name in scores]
    return list(standings.values()), entrants


def is_usable(run: RunRecord, arrays: Arrays) -> bool:
    """Whether a run counts: finished, with finite test predictions, whatever they are."""
    if run.status != "finished":
        return False
    found = arrays.get(run.fingerprint, {}).get("predictions")
    return found is not None and bool(np.isfinite(found).all())


def _standing(
    strategy: str, runs: list[RunRecord], arrays: Arrays, found: Summary | None, fixed: bool
) -> Standing:
    usable = [run for run in runs if is_usable(run, arrays)]
    failed = [run for run in runs if run.status == "failed"]
    degenerate = [run for run in usable if run.degenerate]
    costs = [run.costs for run in usable if run.costs is not None]
    troubles = [run.error for run in failed] + [run.degenerate for run in degenerate]
    return Standing(
        strategy=strategy,
        runs=len(runs),
        failed=len(failed),
        degenerate=len(degenerate),
        unscored=len(runs) - len(failed) - len(usable),
        seeds=len(usable),
        mean=found.mean if found else math.nan,
        std=found.std if found else math.nan,
        low=found.low if found else math.nan,
        high=found.high if found else math.nan,
        fixed=fixed,
        seconds=_mean([_seconds(cost) for cost in costs]),
        storage_bytes=_mean([cost.storage_bytes for cost in costs]),
        trouble=next((text for text in troubles if text), ""),
    )


def _seconds(cost: Costs) -> float:
    return cost.train_seconds + cost.feature_seconds


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.inf
