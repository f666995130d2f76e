"""The figures of one search as plain data: scores by trial, importance, options of every trial.

Bounded metrics are in points (x 100) here already.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from totune.metrics import METRICS
from totune.report import formatting
from totune.report.figures import scale
from totune.search.records import SearchRecord, State, TrialRecord

MOST_OPTIONS = 8  # that one picture can show
_REACH = 2.0  # an axis reaches this many times as far as three quarters of the trials do
_NAMES = {"num_train_epochs": "epochs"}


@dataclass(frozen=True)
class TrialPoint:
    """A trial with a score; `at` counts from 1."""

    at: int
    score: float
    state: State


@dataclass(frozen=True)
class HistoryFigure:
    """Scores by trial.

    Attributes:
        points: trials that have a score.
        best: place and score wherever the best score so far rose.
        trials: how many there were, failed ones too.
        defaults: the score of the defaults, or None.
        winner: the winner's place and score.
        limits: of the axis of scores; what lies beyond is drawn at its edge.
        rises: whether a higher score is better.
    """

    metric: str
    points: tuple[TrialPoint, ...]
    best: tuple[tuple[int, float], ...]
    trials: int
    defaults: float | None
    winner: tuple[int, float] | None
    limits: tuple[float, float]
    rises: bool


@dataclass(frozen=True)
class ImportanceFigure:
    """The options that explain most of the variance of scores, in percent, most first.

    Attributes:
        reason: why there are no bars, or "".
    """

    bars: tuple[tuple[str, float], ...]
    reason: str = ""


@dataclass(frozen=True)
class OptionAxis:
    """The axis of an option, or of the score; marks are places from 0 to 1 with their names."""

    name: str
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class TrialLine:
    """A trial: its place on every axis (None where it has none), how good it is from 0 to 1."""

    places: tuple[float | None, ...]
    shade: float
    pruned: bool
    won: bool


@dataclass(frozen=True)
class OptionsFigure:
    """Every trial over parallel axes; the first is the score's. Lines worst first, winner last."""

    metric: str
    axes: tuple[OptionAxis, ...]
    lines: tuple[TrialLine, ...]


def option_name(name: str) -> str:
    """An option in plain words: "learning rate", "head dropout"."""
    last = name.rpartition(".")[2]
    return name.replace(last, _NAMES.get(last, last)).replace(".", " ").replace("_", " ")


def option_value(value: Any) -> str:
    """An option's value in three digits, or as a word."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return "none" if value is None else formatting.plain(value, "seed")


def rises(metric: str) -> bool:
    """Whether a higher score is better."""
    return metric not in METRICS or METRICS[metric].higher_is_better


def shown_options(record: SearchRecord) -> list[str]:
    """The searched options, most important first where that is known; at most eight."""
    ranked = sorted(record.ranges, key=lambda name: -record.importance.get(name, 0.0))
    return ranked[:MOST_OPTIONS]


def history_figure(record: SearchRecord) -> HistoryFigure | None:
    """Scores by trial, or None where no trial has one."""
    trials = record.scored
    if not trials:
        return None
    points = tuple(
        TrialPoint(trial.number + 1, score, trial.state)
        for trial, score in zip(trials, _scores(record, trials), strict=True)
    )
    first = next((point.score for point in points if point.at == 1), None)
    won = next((point for point in points if point.at == record.best + 1), None)
    return HistoryFigure(
        metric=record.metric,
        points=points,
        best=_best_so_far(points, rises(record.metric)),
        trials=max(trial.number for trial in record.trials) + 1,
        defaults=first,
        winner=None if won is None else (won.at, won.score),
        limits=_with_margin(*_span(record, trials)),
        rises=rises(record.metric),
    )


def _scores(record: SearchRecord, trials: Sequence[TrialRecord]) -> tuple[float, ...]:
    return scale(record.metric, [trial.score for trial in trials if trial.score is not None])


def _best_so_far(points: Sequence[TrialPoint], up: bool) -> tuple[tuple[int, float], ...]:
    """Of complete trials alone, since a pruned one cannot win."""
    found: list[tuple[int, float]] = []
    for point in points:
        better = not found or (point.score > found[-1][1] if up else point.score < found[-1][1])
        if point.state == "complete" and better:
            found.append((point.at, point.score))
    return tuple(found)


def _span(record: SearchRecord, trials: Sequence[TrialRecord]) -> tuple[float, float]:
    """Scores of most trials and of the defaults, without the few that went quite wrong."""
    sign = 1 if rises(record.metric) else -1
    values = sign * np.array(_scores(record, trials))
    top = float(values.max())
    usual = top - _REACH * (top - float(np.quantile(values, 0.25)))
    must = [float(v) for v, trial in zip(values, trials, strict=True) if trial.number == 0]
    bottom = min([max(float(values.min()), usual), *must])
    low, high = sorted((sign * bottom, sign * top))
    return low, high


def _with_margin(low: float, high: float) -> tuple[float, float]:
    margin = 0.07 * (high - low) or 0.02 * abs(high) or 1.0
    return low - margin, high + margin


def importance_figure(record: SearchRecord) -> ImportanceFigure:
    """What matters, or why that cannot be told."""
    if len(record.ranges) == 1:
        return ImportanceFigure((), "One option was searched.")
    if not record.importance:
        return ImportanceFigure((), "Too few trials to tell.")
    ranked = sorted(record.importance.items(), key=lambda item: -item[1])
    bars = tuple((option_name(name), 100 * share) for name, share in ranked[:MOST_OPTIONS])
    return ImportanceFigure(bars)


def options_figure(record: SearchRecord) -> OptionsFigure | None:
    """Every trial that has a score, or None where there is none or nothing was searched."""
    trials, names = record.scored, shown_options(record)
    if not trials or not names:
        return None
    limits = _span(record, trials)
    placed = [_score_places(record, trials, limits)]
    ends = [_score_axis(record.metric, limits)]
    for name in names:
        range_, tried = record.ranges[name], [t.options[name] for t in trials if name in t.options]
        ends.append(OptionAxis(option_name(name), _marks(range_, tried)))
        placed.append([_place(range_, tried, t.options.get(name)) for t in trials])
    up = rises(record.metric)
    lines = [
        TrialLine(
            places=tuple(places),
            shade=_shade(places[0], up),
            pruned=trial.state == "pruned",
            won=trial.number == record.best,
        )
        for trial, places in zip(trials, zip(*placed, strict=True), strict=True)
    ]
    lines.sort(key=lambda line: (line.won, line.shade))
    return OptionsFigure(record.metric, tuple(ends), tuple(lines))


def _score_axis(metric: str, limits: tuple[float, float]) -> OptionAxis:
    digits = "{:.1f}" if formatting.is_bounded(metric) else "{:.3g}"
    names = [digits.format(end) for end in limits]
    marks = ((0.5, names[0]),) if limits[0] == limits[1] else ((0.0, names[0]), (1.0, names[1]))
    return OptionAxis(formatting.metric_label(metric), marks)


def _score_places(
    record: SearchRecord, trials: Sequence[TrialRecord], limits: tuple[float, float]
) -> list[float | None]:
    low, high = limits
    if low == high:
        return [0.5] * len(trials)
    places = [(score - low) / (high - low) for score in _scores(record, trials)]
    return [min(1.0, max(0.0, place)) for place in places]


def _shade(place: float | None, up: bool) -> float:
    """How good a place on the axis of scores is."""
    at = 0.0 if place is None else place
    return at if up else 1.0 - at


def _place(range_: Mapping[str, Any], tried: Sequence[Any], value: Any) -> float | None:
    """Where a value stands on its axis; None for one that is missing or has no logarithm."""
    if range_["kind"] == "choices":
        values = _choices(range_, tried)
        return None if value not in values else _even(values.index(value), len(values))
    if not _is_number(value) or (range_["log"] and value <= 0):
        return None
    low, high = (_moved(end, range_["log"]) for end in _ends(range_, tried))
    return (_moved(value, range_["log"]) - low) / (high - low) if high > low else 0.5


def _marks(range_: Mapping[str, Any], tried: Sequence[Any]) -> tuple[tuple[float, str], ...]:
    if range_["kind"] == "choices":
        values = _choices(range_, tried)
        return tuple((_even(at, len(values)), option_value(v)) for at, v in enumerate(values))
    low, high = _ends(range_, tried)
    if low == high:
        return ((0.5, option_value(low)),)
    return (0.0, option_value(low)), (1.0, option_value(high))


def _even(at: int, count: int) -> float:
    return at / (count - 1) if count > 1 else 0.5


def _choices(range_: Mapping[str, Any], tried: Sequence[Any]) -> list[Any]:
    """A default need not be among the values that a search may try."""
    values = list(range_["values"])
    for value in tried:
        if value not in values:
            values.append(value)
    return values


def _ends(range_: Mapping[str, Any], tried: Sequence[Any]) -> tuple[float, float]:
    """Those of the range; a default may lie outside."""
    known = [value for value in tried if _is_number(value) and (value > 0 or not range_["log"])]
    return min([range_["low"], *known]), max([range_["high"], *known])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _moved(value: float, log: bool) -> float:
    return math.log(value) if log else float(value)
