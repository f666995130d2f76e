"""The runs of a strategy and what they come to: what advice, race and report all start from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.errors import DataError
from totune.metrics import Metric
from totune.runs.records import Costs, RunRecord
from totune.runs.repetitions import runs_of
from totune.statistics import Summary, moderated_summaries

# By fingerprint of a run: targets [N], predictions [N] and, for classes, scores [N, C]; targets and
# predictions are [N, W] where words are tagged, [N, C + 1] where rows have several labels. Of a
# repetition of a cross-validation also the fold of each row, folds [N].
Arrays = Mapping[str, Mapping[str, NDArray[Any]]]

NO_SCORE = Summary(math.nan, math.nan, 0, math.nan, math.nan)


def is_usable(run: RunRecord, arrays: Arrays | None = None) -> bool:
    """Whether a run is a result: it finished, and its test predictions are finite.

    A degenerate run, which gives every row one answer, is a result like any other.

    Args:
        run: the record.
        arrays: the predictions of all runs; None where records alone are read, whose test scores
            are nan exactly where a prediction is not finite.
    """
    if run.status != "finished":
        return False
    if arrays is None:
        return all(math.isfinite(value) for value in run.test.values())
    predictions = arrays.get(run.fingerprint, {}).get("predictions")
    return predictions is not None and bool(np.isfinite(predictions).all())


@dataclass(frozen=True)
class StrategySummary:
    """The runs of one strategy: scores and costs are those of its usable runs.

    Of a cross-validation a record is a repetition of all folds (`totune.runs.repetitions`); costs
    are still those of one run, of one fold.

    What needs predictions is empty where records alone were read: `predictions`, `scores`, `score`.

    Attributes:
        strategy: name that it is compared under.
        records: all its runs, by seed.
        usable: the runs that count, see `is_usable`.
        predictions: of the usable runs on the test rows, [S, N] or [S, N, W]; class probabilities
            [S, N, C] where the metric is of those.
        folds: of a cross-validation the fold of each row in each repetition, [S, N]; else empty.
        scores: test scores of the usable runs in the study's metric, [S].
        score: their mean, their standard deviation, and the 95% interval of the mean over seeds on
            this test set, from variances that all strategies inform
            (`totune.statistics.moderation`); nan where there are too few runs.
    """

    strategy: str
    records: tuple[RunRecord, ...] = ()
    usable: tuple[RunRecord, ...] = ()
    predictions: NDArray[Any] = field(
        default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False
    )
    folds: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)
    scores: tuple[float, ...] = ()
    score: Summary = NO_SCORE

    @property
    def runs(self) -> list[RunRecord]:
        """The runs behind `usable`: of a cross-validation those of the folds."""
        return runs_of(self.usable)

    @property
    def n_folds(self) -> int:
        """The folds of each repetition; 1 without cross-validation."""
        return int(self.folds.max()) if self.folds.size else 1

    @property
    def seeds(self) -> int:
        """The number of usable runs."""
        return len(self.usable)

    @property
    def failed(self) -> tuple[RunRecord, ...]:
        """The runs that ended with an error."""
        return tuple(record for record in self.records if record.status == "failed")

    @property
    def degenerate(self) -> tuple[RunRecord, ...]:
        """The usable runs that give every row one answer."""
        return tuple(record for record in self.usable if record.degenerate)

    @property
    def unscored(self) -> int:
        """The number of finished runs without finite test predictions."""
        return len(self.records) - len(self.failed) - len(self.usable)

    @property
    def trouble(self) -> str:
        """The first message of a failed or degenerate run, or ""."""
        messages = [run.error for run in self.failed] + [run.degenerate for run in self.degenerate]
        return next((message for message in messages if message), "")

    @property
    def fixed(self) -> bool:
        """Whether all usable runs give the same predictions."""
        return bool(len(self.predictions)) and bool(
            (self.predictions == self.predictions[:1]).all()
        )

    @property
    def is_constant(self) -> bool:
        """Whether every usable run gives all rows one answer."""
        answers = self.predictions
        return len(self.degenerate) == self.seeds or bool((answers == answers[:, :1]).all())

    def values(self, metric: str) -> list[float]:
        """The recorded test scores in any metric, one per usable run that knows it."""
        return known_values(self.usable, metric)

    def mean(self, metric: str) -> float | None:
        """The mean of `values`; None if there is none."""
        values = self.values(metric)
        return fmean(values) if values else None

    def cost(self, name: str) -> float | None:
        """The mean of one field of `Costs` over the runs that know it; None if there is none."""
        found = [float(getattr(costs, name)) for costs in self._costs()]
        known = [value for value in found if math.isfinite(value)]
        return fmean(known) if known else None

    def seconds(self) -> float | None:
        """The mean wall time of a run in seconds, its features included; None if not recorded."""
        found = [run_seconds(costs) for costs in self._costs()]
        return fmean(found) if found else None

    @property
    def cost_order(self) -> tuple[float, float, str]:
        """What strategies are ordered by: seconds, then bytes stored, then name.

        What is not recorded is infinite.
        """
        seconds = self.seconds()
        return math.inf if seconds is None else seconds, self.storage, self.strategy

    @property
    def storage(self) -> float:
        """The mean number of bytes to store per task; infinite if not recorded."""
        found = self.cost("storage_bytes")
        return math.inf if found is None else found

    def to_json(self) -> dict[str, Any]:
        """Numbers alone, with None for each that is not known."""
        summary = {
            "strategy": self.strategy,
            "runs": len(self.records),
            "failed": len(self.failed),
            "degenerate": len(self.degenerate),
            "unscored": self.unscored,
            "seeds": self.seeds,
            "folds": self.n_folds,
            "rows": len(self.predictions[0]) if len(self.predictions) else None,
            "mean": self.score.mean,
            "std": self.score.std,
            "low": self.score.low,
            "high": self.score.high,
            "fixed": self.fixed,
            "seconds": self.seconds(),
            "storage_bytes": self.cost("storage_bytes"),
            "trouble": self.trouble,
        }
        return {name: finite(value) for name, value in summary.items()}

    def _costs(self) -> list[Costs]:
        return [record.costs for record in self.usable if record.costs is not None]


def summarize(
    records: Sequence[RunRecord],
    names: Sequence[str] = (),
    arrays: Arrays | None = None,
    read: str = "predictions",
) -> list[StrategySummary]:
    """Groups runs by strategy; scores are added by `score_strategies`.

    Args:
        records: the runs of a study.
        names: strategies in the order wanted, each with a summary even if it has no run; those
            found only in records follow, by name.
        arrays: the predictions of all runs; None where records alone are read.
        read: which of their arrays is scored: "predictions", or "scores", the probabilities.
    """
    runs: dict[str, list[RunRecord]] = {name: [] for name in names}
    for record in sorted(records, key=lambda run: (run.strategy, run.seed, run.fingerprint)):
        runs.setdefault(record.strategy, []).append(record)
    summaries = []
    for name, found in runs.items():
        usable = tuple(run for run in found if is_usable(run, arrays))
        summary = StrategySummary(name, tuple(found), usable)
        if arrays is not None and usable:
            found_arrays = [arrays[run.fingerprint] for run in usable]
            predictions = np.stack([each[read] for each in found_arrays])
            summary = replace(summary, predictions=predictions)
            if all("folds" in each for each in found_arrays):
                folds = np.stack([each["folds"] for each in found_arrays])
                summary = replace(summary, folds=folds)
        summaries.append(summary)
    return summaries


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


def score_strategies(
    records: Sequence[RunRecord], arrays: Arrays, test: TestSet, metric: Metric
) -> list[StrategySummary]:
    """Every strategy's summary, by name, scored in one metric.

    Args:
        records: the runs of a study.
        arrays: their predictions.
        test: the test set.
        metric: the one that strategies are compared in.
    """
    summaries = summarize(records, arrays=arrays, read=metric.reads)
    scored = [
        replace(
            each,
            scores=tuple(metric(test.targets, one, test.n_classes) for one in each.predictions),
        )
        for each in summaries
        if each.usable
    ]
    samples, fixed = [each.scores for each in scored], [each.fixed for each in scored]
    found = moderated_summaries(samples, metric, len(test.targets), fixed)
    known = {
        each.strategy: replace(each, score=score) for each, score in zip(scored, found, strict=True)
    }
    return [known.get(each.strategy, each) for each in summaries]


def known_values(records: Sequence[RunRecord], metric: str) -> list[float]:
    """The finite test scores of `records` in one metric."""
    found = (record.test.get(metric) for record in records)
    return [value for value in found if value is not None and math.isfinite(value)]


def run_seconds(costs: Costs) -> float:
    """The wall time of a run in seconds: training, and the features that it reads."""
    return costs.train_seconds + costs.feature_seconds


def finite(value: Any) -> Any:
    """Plain data for JSON: None for every number that is not finite, lists for tuples."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
