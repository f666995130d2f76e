"""The figures of a study: rows from its records, then drawn.

Rows are what is shown: bounded metrics are in points (x 100).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from totune.advice.summary import StrategySummary, known_values
from totune.metrics import METRICS
from totune.report import formatting, plots
from totune.report.axes import Point, add_heading, label_axes, log_axis, mark_phases
from totune.report.groups import best_first, by_strategy, summaries
from totune.report.plots import Rows, axis_label, scale
from totune.runs.records import EpochRecord, RunRecord, StudyInfo
from totune.statistics import Summary

ENOUGH_FOR_A_BOX = 5  # runs
_DURATIONS = (0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)  # seconds


def strategy_colors(info: StudyInfo, records: Sequence[RunRecord]) -> dict[str, str]:
    """The colour of every strategy of a study, whichever of them a figure shows."""
    return plots.colors_of(group.strategy for group in by_strategy(info, records))


def rows_by_strategy(rows: Rows) -> list[Rows]:
    """The rows of each strategy, in their order."""
    return [list(own) for _, own in groupby(rows, lambda row: row["strategy"])]


def score_rows(
    info: StudyInfo,
    records: Sequence[RunRecord],
    metric: str,
    standings: Sequence[StrategySummary] = (),
) -> list[dict[str, Any]]:
    """Every run's test score, a row per strategy, best first.

    Args:
        info: of the study.
        records: its runs.
        metric: what is shown.
        standings: of the advice, if there is one; see `summaries`.

    Returns:
        What `plots.boxes` draws: `values` are those of usable runs that are not degenerate, `odd`
        those of degenerate ones; `mean`, with its 95% interval from `low` to `high`, and
        `quartiles` are over all of them. No rows where no run knows the metric.
    """
    groups = by_strategy(info, records)
    found = summaries(info, groups, metric, standings)
    rows = [
        _score_row(group, metric, found.get(group.strategy))
        for group in best_first(groups, info.metric)
    ]
    return [row for row in rows if row["values"] or row["odd"]]


def _score_row(runs: StrategySummary, metric: str, found: Summary | None) -> dict[str, Any]:
    healthy = [run for run in runs.usable if not run.degenerate]
    values = runs.values(metric)
    quartiles = np.percentile(values, (25, 50, 75)) if len(values) >= ENOUGH_FOR_A_BOX else ()
    return {
        "name": runs.strategy,
        "values": [scale(metric, value) for value in known_values(healthy, metric)],
        "odd": [scale(metric, value) for value in known_values(runs.degenerate, metric)],
        **_interval(found, metric),
        "quartiles": [scale(metric, value) for value in quartiles] or None,
    }


def _interval(found: Summary | None, metric: str) -> dict[str, Any]:
    """Mean and 95% interval in the units of the axis, None where they are not known."""
    ends = (None,) * 3 if found is None else (found.mean, found.low, found.high)
    return dict(zip(("mean", "low", "high"), (scale(metric, end) for end in ends), strict=True))


def draw_scores(rows: Rows, metric: str, colors: Mapping[str, str]) -> str:
    """Runs as points, a strategy below another; quartile boxes where there are enough runs.

    Args:
        rows: of `score_rows`.
        metric: which they show.
        colors: of the strategies.
    """
    title = f"{formatting.metric_label(metric)} of every run"
    with plots.picture(title, 4.7, 0.75 + 0.52 * len(rows)) as plot:
        digits = ".1f" if formatting.is_bounded(metric) else ".3g"
        limits = score_limits(rows, metric)
        plots.boxes(plot.axes, rows, color=colors, limits=limits, digits=digits)
        label_axes(plot.axes, x=axis_label(metric), grid="x")
    return plot.svg


def score_limits(rows: Rows, metric: str) -> Point:
    """An axis for all means and values that shows their intervals where it can.

    Degenerate runs do not stretch it, nor does an interval stretch it out of shape: that of two
    seeds can be ten times as wide as all the differences one wants to see.

    Args:
        rows: with `mean`, `low` and `high`, and `values` where there are some.
        metric: which they show.
    """
    values = _known(value for row in rows for value in (*row.get("values", ()), row["mean"]))
    reach = _known(row[end] for row in rows for end in ("low", "high"))
    width = (max(values) - min(values)) or 0.05 * abs(values[0]) or 1.0
    low = max(min([*values, *reach]), min(values) - width)
    high = min(max([*values, *reach]), max(values) + width)
    margin = 0.05 * ((high - low) or width)
    top = 100.0 if formatting.is_bounded(metric) else high
    return low - margin, min(top, high) + margin


def cost_rows(
    info: StudyInfo, records: Sequence[RunRecord], standings: Sequence[StrategySummary] = ()
) -> list[dict[str, Any]]:
    """What quality costs: mean `seconds` per run, features included, and the mean score.

    A row per strategy that knows both.
    """
    groups = by_strategy(info, records)
    found = summaries(info, groups, info.metric, standings)
    rows = [
        {
            "strategy": group.strategy,
            "seconds": group.seconds(),
            **_interval(found.get(group.strategy), info.metric),
        }
        for group in groups
    ]
    return [row for row in rows if row["seconds"] and row["mean"] is not None]


def draw_costs(rows: Rows, metric: str, colors: Mapping[str, str]) -> str:
    """Mean training time (log scale) against the mean metric with its interval."""
    seconds = [row["seconds"] for row in rows]
    low, high = min(seconds) / 2, max(seconds) * 2
    with plots.picture("Cost against quality", 4.7, 3.4) as plot:
        label_axes(
            plot.axes,
            x="Mean training time per run, features included (log scale)",
            y=axis_label(metric),
            ylim=score_limits(rows, metric),
            grid="both",
        )
        room_for_names = (high / low) ** 0.3
        log_axis(plot.axes, {at: _said(at) for at in _DURATIONS}, (low, high * room_for_names))
        plots.scatter(
            plot.axes,
            rows,
            "seconds",
            "mean",
            by="strategy",
            color=colors,
            size=60,
            interval=("low", "high"),
            names="strategy",
        )
    return plot.svg


def _said(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else formatting.duration(seconds)


def epoch_rows(info: StudyInfo, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The study's metric after every epoch, strategies best first.

    Returns:
        A row per epoch of every run, failed ones too, with `strategy`, `seed`, `epoch` counted from
        1 over the run, its `phase`, that one's `place` in the plan and `epoch_in_phase`, both from
        1; `dev`, `train` (after the epoch, dropout off) and `live` (on train too, but while
        training, dropout on), None where they are not known; `gap`, how far `train` is better than
        `dev`; whether the epoch was `kept`, and whether the run is `usable` and `degenerate`.
    """
    groups = best_first(by_strategy(info, records), info.metric)
    return [
        {**row, "usable": run in group.usable}
        for group in groups
        for run in group.records
        for row in _epochs_of(run, info.metric)
    ]


def _epochs_of(run: RunRecord, metric: str) -> list[dict[str, Any]]:
    places = [
        (place, number)
        for place, (_, epochs) in enumerate(phases_of(run), start=1)
        for number in range(1, len(epochs) + 1)
    ]
    rows = []
    for at, (epoch, (place, number)) in enumerate(zip(run.epochs, places, strict=True), start=1):
        dev, train = epoch.dev.get(metric), epoch.train_after.get(metric)
        gap = None if dev is None or train is None else METRICS[metric].sign * (train - dev)
        scores = {"dev": dev, "train": train, "live": epoch.train.get(metric), "gap": gap}
        rows.append(
            {
                "strategy": run.strategy,
                "seed": run.seed if run.fold is None else f"{run.seed}, fold {run.fold}",
                "epoch": at,
                "phase": epoch.phase,
                "place": place,
                "epoch_in_phase": number,
                **{name: scale(metric, value) for name, value in scores.items()},
                "kept": at == run.best_epoch,
                "degenerate": bool(run.degenerate),
            }
        )
    return rows


def phases_of(run: RunRecord) -> list[tuple[str, list[EpochRecord]]]:
    """The name of each phase with its epochs, in order."""
    return [(name, list(found)) for name, found in groupby(run.epochs, lambda epoch: epoch.phase)]


def curve_rows(info: StudyInfo, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The `epoch_rows` of the runs that know the metric on dev after some epoch."""
    rows = epoch_rows(info, records)
    known = {(row["strategy"], row["seed"]) for row in rows if row["dev"] is not None}
    return [row for row in rows if (row["strategy"], row["seed"]) in known]


def curve_limits(rows: Rows) -> Point:
    """A scale for all curves; degenerate runs do not stretch it unless there are no others."""
    shown = [row for row in rows if not row["degenerate"]] or rows
    values = _known(row[kind] for row in shown for kind in ("dev", "live"))
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def draw_curves(rows: Rows, metric: str, color: str, limits: Point) -> str:
    """One strategy's dev metric by epoch, a line per seed; dashed for degenerate runs.

    Args:
        rows: of `curve_rows`, those of one strategy.
        metric: which they show.
        color: of the strategy.
        limits: of the axis of scores.
    """
    strategy = rows[0]["strategy"]
    epochs = max(row["epoch"] for row in rows)
    with plots.picture(f"Learning curves of {strategy}", 3.1, 2.5) as plot:
        axes = plot.axes
        for odd, style in ((False, "solid"), (True, "dashed")):
            own = [row for row in rows if row["degenerate"] == odd]
            plots.lines(axes, own, "epoch", "dev", by="seed", color=color, style=style)
        live: dict[str, Any] = {"style": "dotted", "width": 1.0, "alpha": 0.7}
        plots.lines(axes, rows, "epoch", "live", by="seed", color=color, **live)
        plots.scatter(
            axes, [row for row in rows if row["kept"]], "epoch", "dev", color=color, size=34
        )
        spans = _longest_run(rows)
        if len(spans) > 1:
            mark_phases([axes], spans, upright=False)
        add_heading(axes, strategy, color)
        label_axes(
            axes, x="Epoch", y=axis_label(metric), xlim=(0.5, epochs + 0.5), ylim=limits, ticks=6
        )
    return plot.svg


def _longest_run(rows: Rows) -> list[dict[str, Any]]:
    """The phases of the run that has most epochs, as `mark_phases` draws them."""
    seeds = [row["seed"] for row in rows]
    longest = [row for row in rows if row["seed"] == max(seeds, key=seeds.count)]
    return [
        {"phase": own[0]["phase"], "start": own[0]["epoch"] - 1, "epochs": len(own)}
        for _, found in groupby(longest, lambda row: row["place"])
        for own in [list(found)]
    ]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]
