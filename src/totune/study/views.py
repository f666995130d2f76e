"""What a study shows in Python: rows for data frames, a table against another study, HTML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from markupsafe import Markup

from totune.advice import Advice, StrategySummary
from totune.advice.summary import summarize
from totune.errors import ConfigError, DataError
from totune.metrics import get_metric
from totune.report import formatting
from totune.report.table import Column, Row, Table, number, span, word
from totune.runs.records import RunRecord, StudyInfo
from totune.statistics import Paired, Welch, paired_bootstrap, welch
from totune.tasks.base import UNKNOWN, Task, task_from_json

RowKind = Literal["run", "epoch", "prediction"]
Arrays = Mapping[str, Mapping[str, np.ndarray]]


def rows_of(
    kind: RowKind, info: StudyInfo, records: Sequence[RunRecord], arrays: Arrays
) -> list[dict[str, Any]]:
    """The records of a study as flat rows.

    Args:
        kind: what a row is: a run, an epoch of a run, or a run's prediction of a test row.
        info: the study.
        records: its runs.
        arrays: their predictions, by fingerprint.

    Raises:
        ConfigError: there is no such kind.
    """
    if kind == "run":
        return [_run_row(record) for record in records]
    if kind == "epoch":
        return [row for record in records for row in _epoch_rows(record)]
    if kind == "prediction":
        task = task_from_json(info.data["task"])
        return [row for record in records for row in _predictions(record, arrays, task)]
    raise ConfigError(f"per={kind!r} is none of run, epoch, prediction.")


def _run_row(record: RunRecord) -> dict[str, Any]:
    costs = {} if record.costs is None else asdict(record.costs)
    options = record.config.get("strategy", {}).get("options", {})
    return {
        **_place(record),
        "status": record.status,
        **{f"test_{name}": value for name, value in record.test.items()},
        **{f"dev_{name}": value for name, value in record.dev.items()},
        "best_epoch": record.best_epoch,
        **costs,
        **{f"option_{name}": value for name, value in options.items()},
        "degenerate": record.degenerate,
        "error": record.error,
        "fingerprint": record.fingerprint,
    }


def _place(record: RunRecord) -> dict[str, Any]:
    """Which run of the study it is; of a cross-validation also the fold."""
    fold = {} if record.fold is None else {"fold": record.fold}
    return {"strategy": record.strategy, "seed": record.seed, **fold}


def _epoch_rows(record: RunRecord) -> Iterator[dict[str, Any]]:
    for epoch in record.epochs:
        yield {
            **_place(record),
            "epoch": epoch.epoch,
            "phase": epoch.phase,
            **{f"train_{name}": value for name, value in epoch.train.items()},
            **{f"dev_{name}": value for name, value in epoch.dev.items()},
            "seconds": epoch.seconds,
        }


def _predictions(record: RunRecord, arrays: Arrays, task: Task) -> Iterator[dict[str, Any]]:
    """The test rows in their order, with labels and class probabilities."""
    found = arrays.get(record.fingerprint) or {}
    if "predictions" not in found:
        return
    names: Sequence[str] = getattr(task, "labels", ())
    scores = found.get("scores")
    shown = scores if scores is not None and scores.shape[1:] == (len(names),) else None
    targets, predictions = _labels(task, found["targets"]), _labels(task, found["predictions"])
    rows = found.get("rows", np.arange(len(targets)))
    for at, (target, prediction) in enumerate(zip(targets, predictions, strict=True)):
        row = {**_place(record), "row": int(rows[at])}
        row |= {"target": target, "prediction": prediction}
        if shown is not None:
            row |= {f"probability_{name}": float(shown[at, c]) for c, name in enumerate(names)}
        yield row


def _labels(task: Task, values: np.ndarray) -> list[Any]:
    """Each row's label; None where training never saw it."""
    return [_label(task, values[at : at + 1]) for at in range(len(values))]


def _label(task: Task, row: np.ndarray) -> Any:
    if np.issubdtype(row.dtype, np.integer) and (row == UNKNOWN).any():
        return None
    try:
        return task.decode(row)[0]
    except (KeyError, IndexError):  # a tag that training never saw
        return None


Side = tuple[StudyInfo, Sequence[RunRecord], Arrays]  # a study, its runs, their predictions


def against(own: Side, other: Side) -> Table:
    """Every strategy of two studies, side by side, in the metric of the first.

    Differences are paired over rows (`paired_bootstrap`) where both were tested on the same rows;
    otherwise their intervals are over seeds alone (Welch 1947).

    Raises:
        DataError: they are of different tasks, or the other does not know the metric.
    """
    info, other_info = own[0], other[0]
    metric = info.metric
    if info.task != other_info.task or metric not in other_info.metrics:
        raise DataError(
            f"A study of {info.task} in {metric} cannot be compared with one of "
            f"{other_info.task} in {', '.join(other_info.metrics)}."
        )
    targets = _shared_targets(own, other)
    first, second = (
        {each.strategy: each for each in summarize(records, (), arrays, get_metric(metric).reads)}
        for _, records, arrays in (own, other)
    )
    how = (
        "The difference is paired over the test rows; its 95% interval is for new rows and seeds."
        if targets is not None
        else "The test rows are not the same, so the 95% interval of the difference is over seeds "
        "alone (Welch) and says nothing of new rows."
    )
    named = " against ".join(f"{one.name} ({_encoder(one)})" for one in (info, other_info))
    columns = ("This study", "The other", "Difference", "95% interval", "p")
    return Table(
        f"{formatting.metric_label(metric)}: {named}",
        (Column("Strategy", numeric=False), *map(Column, columns)),
        tuple(
            _difference(name, first.get(name), second.get(name), metric, targets)
            for name in dict.fromkeys([*info.strategies, *other_info.strategies])
        ),
        (f"Means over the usable runs. {how}",),
    )


def _encoder(info: StudyInfo) -> str:
    return str(info.model.get("name") or "no encoder")


def _shared_targets(own: Side, other: Side) -> np.ndarray | None:
    """The targets of the test rows that both studies were scored on; None where they differ."""
    if own[0].data.get("digest") != other[0].data.get("digest"):
        return None
    found = [next((a["targets"] for a in side[2].values() if a), None) for side in (own, other)]
    one, two = found
    return one if one is not None and two is not None and np.array_equal(one, two) else None


def _difference(
    name: str,
    one: StrategySummary | None,
    other: StrategySummary | None,
    metric: str,
    targets: np.ndarray | None,
) -> Row:
    means = [None if side is None else side.mean(metric) for side in (one, other)]
    cells = [word(name), *(number(mean, formatting.score(metric, mean)) for mean in means)]
    if one is None or other is None or None in means:
        unknown = number(None, formatting.MISSING)
        return Row((*cells, unknown, unknown, unknown))
    first, second = one.values(metric), other.values(metric)
    found: Paired | Welch = welch(first, second)
    if targets is not None:
        sides = one.predictions, other.predictions
        found = paired_bootstrap(get_metric(metric), targets, *sides, folds=one.n_folds)
    gap = float(np.mean(first) - np.mean(second))
    interval = formatting.interval(metric, found.low, found.high, signed=True)
    return Row(
        (
            *cells,
            number(gap, formatting.score(metric, gap, signed=True)),
            span(found.low, found.high, interval),
            number(found.p, formatting.p_value(found.p)),
        )
    )


def study_html(table: Table, advice: Advice, folder: str) -> Markup:
    """What a notebook shows of a study: the comparison and the answer, escaped."""
    reasons = Markup("").join(
        Markup("<li>{}</li>").format(reason) for reason in (*advice.reasons, *advice.caveats)
    )
    return Markup("<div>{}<p><strong>{}</strong></p><ul>{}</ul><p>{}</p></div>").format(
        Markup(table._repr_html_()), advice.headline, reasons, f"Study: {folder}"
    )
