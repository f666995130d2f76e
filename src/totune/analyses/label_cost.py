"""Cost of labels: what each strategy scores with few training rows, with more, with all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult, Rows, finite
from totune.analyses.inputs.learning_curves import LearningCurveSetup, SizedRun, run_size
from totune.analyses.label_cost_section import BEST, label_section
from totune.errors import ConfigError, DataError
from totune.metrics import METRICS, Metric
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord

if TYPE_CHECKING:
    from totune.runs.context import Context

PAIR = ("feature-extraction", "fine-tuning")
NAME = f"{PAIR[1]} over {PAIR[0]}"

Arrays = Mapping[str, NDArray[Any]]
ScoredRuns = Sequence[tuple[float, Arrays]]  # dev score and test predictions of each seed
RunsBySize = dict[tuple[int, str], list[tuple[float, Arrays]]]  # (size, strategy) -> runs
AtLeastOne = Annotated[int, Field(ge=1)]


@ANALYSES.register("label-cost")
@dataclass(frozen=True)
class LabelCost(Analysis[LearningCurveSetup]):
    """Learning curves over sizes of the training set: where does tuning begin to pay?

    Wang et al. 2019 and Hart both end on this question. Each seed draws its own rows, stratified,
    the smaller set within the larger, so that intervals cover which rows were labelled. The label
    space is that of all training rows; dev and test stay whole. Strategies keep their default
    epochs, so few rows are few steps too.

    Attributes:
        sizes: training rows, or `all`; those that the data does not have are left out.
        strategies: strategies that are compared, baselines too; none for tf-idf (for tagging:
            most-frequent-tag), feature-extraction and fine-tuning.
        seeds: number of seeds, or the seeds themselves.
    """

    title: ClassVar[str] = "Cost of labels"

    sizes: Annotated[tuple[AtLeastOne | Literal["all"], ...], Field(min_length=1)] = (
        *(100, 300, 1000, 3000),
        "all",
    )
    strategies: tuple[str, ...] | None = None
    seeds: AtLeastOne | tuple[int, ...] = 3

    def run(self, inputs: LearningCurveSetup, progress: Progress) -> AnalysisResult:
        """Runs what has no finished record yet.

        Raises:
            ConfigError: if no size fits the data, or a strategy does not fit encoder and task.
            DataError: if every run failed.
        """
        sizes = self._fitting_sizes(inputs, progress)
        candidates, seeds = inputs.candidates(self.strategies, self.seeds)
        untuned = inputs.untuned(candidates, seeds[0])
        runs = [
            run
            for size in sizes
            for seed in seeds
            for run in run_size(size, seed, candidates, inputs)
        ]
        if all(run.arrays is None for run in runs):
            raise DataError(f"No run finished. The first one's message: {runs[0].record.error}")
        return _result(runs, untuned, inputs.context)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """Where tuning begins to pay, as sentences, tables and learning curves."""
        return label_section(self.title, result.rows, result.facts)

    def _fitting_sizes(self, setup: LearningCurveSetup, progress: Progress) -> list[int]:
        """The sizes that the data has, ascending."""
        most, least = len(setup.context.dataset.train), setup.smallest_size
        asked = {most if size == "all" else size for size in self.sizes}
        kept = sorted(size for size in asked if least <= size <= most)
        if not kept:
            raise ConfigError(
                f"None of the sizes {', '.join(map(str, self.sizes))} fits: there are {most:,} "
                f"training rows, and at least {least} are needed. Choose others with sizes."
            )
        for size in sorted(asked - set(kept)):
            progress.say(
                f"Size {size:,} is left out: sizes from {least} to {most:,} fit this data."
            )
        return kept


def _result(runs: Sequence[SizedRun], untuned: Sequence[str], context: "Context") -> AnalysisResult:
    metric = METRICS[context.settings.metric]
    rows = [_row(run, metric.name, untuned, context) for run in runs]
    labels = list(dict.fromkeys(run.record.strategy for run in runs))
    usable: RunsBySize = {}
    for run, row in zip(runs, rows, strict=True):
        if run.arrays is not None and row["test"] is not None:
            scored = usable.setdefault((run.size, run.record.strategy), [])
            scored.append((row["dev"], run.arrays))
    found = gains(usable, labels, untuned, metric)
    facts = {
        "metric": metric.name,
        "sizes": sorted({run.size for run in runs}),
        "strategies": labels,
        "untuned": list(untuned),
        "seeds": len({run.record.seed for run in runs}),
        "train_rows": len(context.dataset.train),
        "test_rows": len(context.dataset.test),
        "gains": found,
        "begins": begins(found),
    }
    return AnalysisResult(rows, facts)


def _row(run: SizedRun, metric: str, untuned: Sequence[str], context: "Context") -> dict[str, Any]:
    record, costs = run.record, run.record.costs
    rows_per_step = record.config.get("settings", {}).get("train_batch_size", 1)
    steps = len(record.epochs) * -(-run.rows // rows_per_step) if record.epochs else None
    return {
        "strategy": record.strategy,
        "tuned": record.strategy not in untuned,
        "size": run.size,
        "rows": run.rows,
        "seed": record.seed,
        "dev": finite(record.dev.get(metric)),
        "test": finite(record.test.get(metric)),
        "seconds": None if costs is None else costs.train_seconds + costs.feature_seconds,
        "steps": None if context.settings.tokens_per_batch else steps,
        "trouble": record.error or record.degenerate,
    }


# What tuning gains over not tuning at each size


def gains(
    runs: RunsBySize, labels: Sequence[str], untuned: Sequence[str], metric: Metric
) -> list[dict[str, Any]]:
    """How much better a tuned strategy is than an untuned one, per size and pair.

    Pairs are feature extraction with fine-tuning, and at each size the best tuned with the best
    untuned strategy, chosen by their mean dev scores, unless they are those two at every size.

    Args:
        runs: dev score, targets [N] and predictions [N] of every usable run.
        labels: of all strategies, in order.
        untuned: labels of those that leave the encoder as it is.
        metric: the metric that is compared.

    Returns:
        A mapping per size and pair with the gain in the metric's scale, positive where tuning is
        better, and its 95% interval over seeds and test rows (see `totune.statistics.paired`);
        the interval is None for one seed.
    """
    groups = untuned, [label for label in labels if label not in untuned]
    named, best = [], []
    for size in sorted({size for size, _ in runs}):
        of_size = {label: found for (at, label), found in runs.items() if at == size}
        if all(label in of_size for label in PAIR):
            named.append({"pair": NAME, "size": size, **_gain(of_size, *PAIR, metric)})
        one, other = (_best(of_size, group, metric) for group in groups)
        if one is not None and other is not None:
            best.append({"pair": BEST, "size": size, **_gain(of_size, one, other, metric)})
    same = [(gain["untuned"], gain["tuned"]) for gain in best] == [PAIR] * len(named)
    return named if same else named + best


def begins(gains: Rows) -> list[dict[str, Any]]:
    """Per pair, the smallest size at which tuning is credibly better.

    Returns:
        For each pair `size` (None where there is none), and `stays`: whether it is credibly better
        at every larger size too.
    """
    found = []
    for pair in dict.fromkeys(gain["pair"] for gain in gains):
        own = [gain for gain in gains if gain["pair"] == pair]
        better = [gain["low"] is not None and gain["low"] > 0 for gain in own]
        first = better.index(True) if any(better) else None
        size = None if first is None else own[first]["size"]
        stays = first is not None and all(better[first:])
        found.append({"pair": pair, "size": size, "stays": stays})
    return found


def _best(runs: Mapping[str, ScoredRuns], group: Sequence[str], metric: Metric) -> str | None:
    """The strategy of a group with the best mean dev score."""

    def score(label: str) -> float:
        return metric.sign * fmean(dev for dev, _ in runs[label])

    return max((label for label in group if label in runs), key=score, default=None)


def _gain(
    runs: Mapping[str, ScoredRuns], untuned: str, tuned: str, metric: Metric
) -> dict[str, Any]:
    from totune.statistics import paired_bootstrap

    one, other = (
        np.stack([arrays[metric.reads] for _, arrays in runs[label]]) for label in (untuned, tuned)
    )
    arrays = runs[tuned][0][1]
    classes = arrays["scores"].shape[-1] if "scores" in arrays else None
    better, worse = (other, one) if metric.higher_is_better else (one, other)
    found = paired_bootstrap(metric, arrays["targets"], better, worse, classes)
    known = math.isfinite(found.low)
    return {
        "untuned": untuned,
        "tuned": tuned,
        "gain": found.difference,
        "low": found.low if known else None,
        "high": found.high if known else None,
    }
