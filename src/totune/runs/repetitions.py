"""Repetitions of a cross-validation: the runs of all folds, pooled, as if they were one run.

A repetition predicts every row once, so its predictions stand beside those of other repetitions and
strategies row by row, and its score is that of all rows together rather than a mean over folds
(which for F1 is another number: Forman and Scholz 2010).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.metrics import PADDING
from totune.runs.records import Costs, RunRecord
from totune.tasks.base import Task

RunArrays = Mapping[str, NDArray[Any]]
ArraysByRun = dict[str, Mapping[str, NDArray[Any]]]


def pool_folds(
    records: Sequence[RunRecord], arrays: Mapping[str, RunArrays], folds: int, task: Task
) -> tuple[list[RunRecord], ArraysByRun]:
    """A record per repetition, in the order of strategies.

    Args:
        records: runs of a study.
        arrays: their predictions by fingerprint, with `rows` of those of folds.
        folds: of each repetition.
        task: scores the pooled predictions.

    Returns:
        Records whose `parts` are the runs of the folds, and the predictions on all rows, [N] in the
        order of the rows, with the number of each row's fold as `folds`. The record of a repetition
        of which a fold failed or has not run is a failed one.
    """
    found: dict[tuple[str, int], list[RunRecord]] = {}
    for record in sorted(records, key=lambda run: (run.seed, run.fold or 0)):
        found.setdefault((record.strategy, record.seed), []).append(record)
    pooled: list[RunRecord] = []
    together: ArraysByRun = {}
    order = {record.strategy: place for place, record in reversed(list(enumerate(records)))}
    for (strategy, seed), parts in sorted(found.items(), key=lambda i: (order[i[0][0]], i[0][1])):
        result = _unfinished(parts, folds)
        if result is None:
            rows = _pool([arrays[part.fingerprint] for part in parts], [p.fold or 0 for p in parts])
            together[parts[0].fingerprint] = rows
            result = _record(parts, rows, task)
        pooled.append(replace(result, strategy=strategy, seed=seed, parts=tuple(parts)))
    return pooled, together


def runs_of(records: Iterable[RunRecord]) -> list[RunRecord]:
    """The runs themselves: those of the folds in place of their repetitions."""
    return [run for record in records for run in record.parts or (record,)]


def _unfinished(parts: Sequence[RunRecord], folds: int) -> RunRecord | None:
    """The record of a repetition that is not whole; None if it is."""
    failed = [part for part in parts if part.status == "failed"]
    if failed:
        error = f"fold {failed[0].fold}: {failed[0].error}"
    elif len(parts) < folds:
        error = f"{folds - len(parts)} of its {folds} folds have not run"
    else:
        return None
    return replace(parts[0], status="failed", error=error, predictions=None, dev={}, test={})


def _pool(parts: Sequence[RunArrays], folds: Sequence[int]) -> dict[str, NDArray[Any]]:
    """The arrays of all folds in the order of the rows."""
    rows = np.concatenate([part["rows"] for part in parts])
    order = np.argsort(rows)
    numbers = np.repeat(folds, [len(part["rows"]) for part in parts])
    pooled = {"rows": rows[order], "folds": numbers[order]}
    for name in ("targets", "predictions", "scores"):
        if all(name in part for part in parts):
            pooled[name] = np.concatenate(_padded([part[name] for part in parts], name))[order]
    return pooled


def _padded(arrays: Sequence[NDArray[Any]], name: str) -> list[NDArray[Any]]:
    """Codes of tags [n, W] as wide as the longest sentence of all folds; others as they are."""
    if arrays[0].ndim == 1 or name == "scores":
        return list(arrays)
    width = max(array.shape[1] for array in arrays)
    return [
        np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=PADDING)
        for array in arrays
    ]


def _record(parts: Sequence[RunRecord], arrays: RunArrays, task: Task) -> RunRecord:
    """The record of a whole repetition."""
    degenerate = [part.degenerate for part in parts if part.degenerate]
    known = [asdict(part.costs) for part in parts if part.costs is not None]
    return replace(
        parts[0],
        dev={name: fmean(part.dev[name] for part in parts) for name in parts[0].dev},
        test=_test(arrays, task),
        costs=Costs(**{name: _mean(known, name) for name in known[0]}) if known else None,
        degenerate=degenerate[0] if len(degenerate) == len(parts) else None,
        epochs=[],
        best_epoch=-1,
    )


def _test(arrays: RunArrays, task: Task) -> dict[str, float]:
    targets, predictions = arrays["targets"], arrays["predictions"]
    scores = task.evaluate(targets, predictions, arrays.get("scores"))
    return scores | task.label_scores(targets, predictions)


def _mean(costs: Sequence[Mapping[str, Any]], name: str) -> Any:
    """The mean of one field; counts stay whole numbers."""
    values = [cost[name] for cost in costs]
    mean = fmean(values)
    return round(mean) if isinstance(values[0], int) else mean
