"""What running a recipe gives, as plain data, from which its tables and pictures are drawn."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from totune.statistics import Summary, summary, welch
from totune.tasks.base import Task

AVERAGES = ("f1 of class 0", "f1 macro", "f1 weighted", "f1 micro")


@dataclass(frozen=True)
class Outcome:
    """A row of a table: what came out, beside what the paper tells.

    Attributes:
        label: the row's name.
        scores: the values of each metric, one per fold or seed.
        paper: the paper's mean of each metric.
        failed: how many runs failed; they have no values.
        degenerate: how many runs are useless whatever their score; their values count.
        absent: why nothing was run, or the results of nothing can be read; empty if there are any.
    """

    label: str
    scores: Mapping[str, tuple[float, ...]]
    paper: Mapping[str, float]
    failed: int = 0
    degenerate: int = 0
    absent: str = ""

    @property
    def count(self) -> int:
        """How many folds or seeds have values."""
        return max((len(values) for values in self.scores.values()), default=0)

    def summary(self, metric: str) -> Summary | None:
        """Mean, spread and interval; None if no run finished."""
        values = self.scores.get(metric, ())
        return summary(values) if values else None

    def difference(self, metric: str) -> float | None:
        """Our mean minus the paper's, where there are both."""
        ours = self.summary(metric)
        return None if ours is None or metric not in self.paper else ours.mean - self.paper[metric]


@dataclass(frozen=True)
class ProtocolGroup:
    """The rows that were run in one way, or on one data set.

    Attributes:
        metrics: those that are shown; the recipe's if empty.
        data: name of the data set, where they differ between groups.
    """

    title: str
    about: str
    outcomes: tuple[Outcome, ...]
    metrics: tuple[str, ...] = ()
    data: str = ""


@dataclass(frozen=True)
class WelchTest:
    """A Welch t-test, ours beside the paper's.

    Attributes:
        ours: "t", "df" and "p"; None where fewer than two runs finished.
        paper: likewise; None where the paper has no such test.
    """

    first: str
    second: str
    metric: str
    ours: Mapping[str, float] | None
    paper: Mapping[str, float] | None


@dataclass(frozen=True)
class Results:
    """Everything that a recipe's report is drawn from; the first group is the one to compare.

    Attributes:
        fraction: the share of the rows (of a study, of its train rows) that was used.
        seeds: how many there were.
        facts: tables of further facts, by title.
    """

    groups: tuple[ProtocolGroup, ...]
    tests: tuple[WelchTest, ...]
    fraction: float
    seeds: int
    facts: Mapping[str, Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """The results with the summary of every row added; what is not a number is None."""
        data = asdict(self)
        for group, drawn in zip(self.groups, data["groups"], strict=True):
            for outcome, row in zip(group.outcomes, drawn["outcomes"], strict=True):
                found = {name: outcome.summary(name) for name in outcome.scores}
                row["summary"] = {name: asdict(one) for name, one in found.items() if one}
        plain: dict[str, Any] = _finite(data)
        return plain


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def evaluate(task: Task, targets: NDArray[Any], predictions: NDArray[Any]) -> dict[str, float]:
    """Every metric of the task, and for two classes the other things that are called F1.

    `f1` is that of class 1. Micro-averaged F1 over all classes equals accuracy.
    """
    scores = task.evaluate(targets, predictions)
    if "f1" in scores and task.outputs == 2:
        of_class = f1_score(targets, predictions, labels=[0, 1], average=None, zero_division=0)
        counts = np.array([(targets == index).sum() for index in (0, 1)])
        weighted = float(of_class @ counts / max(1, counts.sum()))
        values = (of_class[0], of_class.mean(), weighted, scores["accuracy"])
        scores |= dict(zip(AVERAGES, map(float, values), strict=True))
    return scores


def run_test(
    first: Outcome, second: Outcome, metric: str, paper: Mapping[str, float] | None
) -> WelchTest:
    """Welch's test of mean `first` minus mean `second`; without ours for fewer than two values."""
    one, other = first.scores.get(metric, ()), second.scores.get(metric, ())
    ours = None
    if min(len(one), len(other)) > 1:
        found = welch(one, other)
        ours = {"t": found.t, "df": found.df, "p": found.p}
    return WelchTest(first.label, second.label, metric, ours, paper)
