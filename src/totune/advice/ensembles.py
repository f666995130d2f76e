"""Ensembles of the runs of a study (Wang et al. 2019 combine three models by ensembling).

This is for information: the advice compares strategies, not ensembles, and an ensemble chosen by
its test score would be chosen on test.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.advice.summary import Arrays, TestSet, find_test_set, finite, is_usable
from totune.metrics import USUAL_THRESHOLD, Metric, get_metric
from totune.runs.records import RunRecord

MOST_STRATEGIES = 3
RunArrays = Mapping[str, NDArray[Any]]  # the arrays of one run


@dataclass(frozen=True)
class Ensemble:
    """Several runs as one predictor; scores in each metric's own scale.

    Attributes:
        name: "fine-tuning x 5 seeds", or "3 best strategies".
        members: names of its runs, such as "fine-tuning seed 0", best dev score first.
        test: test score by metric.
        alone: mean test score of its members by metric.
        gain: improvement of `test` over `alone` by metric; positive is better, for errors too.
        storage_bytes: bytes that all its members store per task on top of the encoder; infinite if
            not recorded.
        latency_milliseconds: prediction time per example, all members one after the other; nan if
            not recorded.
    """

    name: str
    members: tuple[str, ...]
    test: dict[str, float]
    alone: dict[str, float]
    gain: dict[str, float]
    storage_bytes: float
    latency_milliseconds: float

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it: numbers that are not finite become None."""
        found: dict[str, Any] = finite(asdict(self))
        return found


def find_ensembles(
    records: Sequence[RunRecord], arrays: Arrays, metrics: Sequence[str]
) -> tuple[Ensemble, ...]:
    """The ensembles of a study: every strategy's seeds, and the best strategies by dev score.

    A strategy makes one of all its usable runs where there are at least two; the last ensemble is
    the best run by dev score of each of the (at most three) strategies on the encoder that are best
    by it. Runs that all predict the same are copies and make no ensemble; neither do two runs that
    only vote, since every tie goes to the better one.

    Args:
        records: the runs of a study, all on the same test set.
        arrays: as for `advise`.
        metrics: names in `totune.metrics.METRICS`, the one that decides on dev first.

    Raises:
        ConfigError: for an unknown metric.
        DataError: if the runs were scored on different test rows.
    """
    measures = [get_metric(name) for name in metrics]
    test = find_test_set(arrays)
    ranked = _by_dev([run for run in records if _can_join(run, arrays)], measures[0])
    seeds = [
        (f"{strategy} x {len(runs)} seeds", runs)
        for strategy in dict.fromkeys(record.strategy for record in records)
        if len(runs := [run for run in ranked if run.strategy == strategy]) > 1
    ]
    best = _best_of_each(ranked)
    across = [(f"{len(best)} best strategies", best)] if len(best) > 1 else []
    return tuple(
        _ensemble(name, runs, arrays, test, measures)
        for name, runs in (*seeds, *across)
        if _differ([arrays[run.fingerprint] for run in runs])
    )


def _can_join(run: RunRecord, arrays: Arrays) -> bool:
    if not is_usable(run, arrays):
        return False
    return bool(np.isfinite(arrays[run.fingerprint].get("scores", 0.0)).all())


def _by_dev(runs: Sequence[RunRecord], metric: Metric) -> list[RunRecord]:
    """Best dev score first, of equals the lowest seed; runs without one last."""
    worst = -metric.sign * math.inf
    return sorted(runs, key=lambda run: (-metric.sign * run.dev.get(metric.name, worst), run.seed))


def _best_of_each(ranked: Sequence[RunRecord]) -> list[RunRecord]:
    """The first run of each of the first strategies that train on the encoder.

    Baselines have no head.
    """
    first: dict[str, RunRecord] = {}
    for run in ranked:
        if run.config.get("head"):
            first.setdefault(run.strategy, run)
    return list(first.values())[:MOST_STRATEGIES]


def _differ(members: Sequence[RunArrays]) -> bool:
    """Whether the members together can predict anything that the first alone does not."""
    first, *others = (member["predictions"] for member in members)
    if all(np.array_equal(first, other) for other in others):
        return False
    return len(members) > 2 or not _vote(members)


def _vote(members: Sequence[RunArrays]) -> bool:
    """Whether there is nothing to average: no probabilities, no numbers."""
    numbers = all(member["predictions"].dtype.kind == "f" for member in members)
    return not (numbers or all("scores" in member for member in members))


def _ensemble(
    name: str,
    runs: Sequence[RunRecord],
    arrays: Arrays,
    test: TestSet,
    metrics: Sequence[Metric],
) -> Ensemble:
    members = [arrays[run.fingerprint] for run in runs]
    together = {"predictions": combine(members)}
    if all("scores" in member for member in members):
        together["scores"] = _mean("scores", members)
    scores = {m.name: m(test.targets, together[m.reads], test.n_classes) for m in metrics}
    alone = {
        m.name: fmean(m(test.targets, member[m.reads], test.n_classes) for member in members)
        for m in metrics
    }
    costs = [run.costs for run in runs]
    return Ensemble(
        name=name,
        members=tuple(f"{run.strategy} seed {run.seed}" for run in runs),
        test=scores,
        alone=alone,
        gain={m.name: m.sign * (scores[m.name] - alone[m.name]) for m in metrics},
        storage_bytes=sum(math.inf if cost is None else cost.storage_bytes for cost in costs),
        latency_milliseconds=sum(
            math.nan if cost is None else cost.latency_milliseconds for cost in costs
        ),
    )


def combine(members: Sequence[RunArrays]) -> NDArray[Any]:
    """The joint predictions of several runs.

    Classes are those of the highest mean probability, or those that it puts beyond the mean
    threshold where thresholds were tuned; so are several labels per row, with a threshold of 0.5
    where none was tuned. Numbers are means. Of tags, which have no probabilities, each word gets
    the one that most members give; a tie goes to the member that comes first.

    Args:
        members: the arrays of M runs, best dev score first: `predictions` [N] or [N, W], of classes
            `scores` [N, C] too, and `thresholds` [1] where they were tuned; of several labels
            `predictions` [N, C + 1], `scores` [N, C], and `thresholds` [C] where tuned.

    Returns:
        Predictions [N], [N, W] or [N, C + 1].
    """
    predictions = np.stack([member["predictions"] for member in members])  # [M, N] or [M, N, W]
    if _vote(members):
        votes = np.stack([(predictions == own).sum(axis=0) for own in predictions])
        winner = votes.argmax(axis=0)[None]  # of equals the first
        return np.asarray(np.take_along_axis(predictions, winner, axis=0)[0])
    if predictions.dtype.kind == "f":
        return np.asarray(predictions.mean(axis=0, dtype=np.float64))
    scores = _mean("scores", members)  # [N, C]
    tuned = all("thresholds" in member for member in members)
    thresholds = _mean("thresholds", members) if tuned else np.array([USUAL_THRESHOLD])
    if predictions.ndim == 3:
        joint: NDArray[Any] = np.zeros_like(predictions[0])
        joint[:, :-1] = scores >= thresholds
        return joint
    if tuned:  # of the second of two classes
        return np.asarray(scores[:, 1] >= thresholds[0], dtype=np.int64)
    return np.asarray(scores.argmax(axis=1))


def _mean(name: str, members: Sequence[RunArrays]) -> NDArray[np.float64]:
    """The mean of one array over the members."""
    found = np.stack([member[name] for member in members])
    return np.asarray(found.mean(axis=0, dtype=np.float64))
