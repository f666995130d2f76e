"""The figure of one search: every trial's score over the trials and over each option's values.

Bounded metrics are in points (x 100) here already.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from totune.metrics import is_higher_better
from totune.report import formatting, plots
from totune.report.axes import GREY, INK, Point, draw_level, label_axes
from totune.report.plots import Rows, axis_label, scale
from totune.search.records import SearchRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OPTIONS = 8  # that one picture can show
_REACH = 2.0  # an axis reaches this many times as far as three quarters of the trials do
_LETTERS = 26  # of all names side by side below one option
_ROOM = 0.2  # of the height of the axes, that a name takes
_NAMES = {"num_train_epochs": "epochs"}


def option_name(name: str) -> str:
    """An option in plain words: "learning rate", "head dropout"."""
    last = name.rpartition(".")[2]
    return name.replace(last, _NAMES.get(last, last)).replace(".", " ").replace("_", " ")


def option_value(value: Any) -> str:
    """An option's value in three digits, or as a word."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return "none" if value is None else formatting.plain(value, "seed")


def shown_options(record: SearchRecord) -> list[str]:
    """The searched options, most important first where that is known; at most eight."""
    ranked = sorted(record.ranges, key=lambda name: -record.importance.get(name, 0.0))
    return ranked[:MOST_OPTIONS]


def trial_rows(record: SearchRecord) -> list[dict[str, Any]]:
    """The trials that have a score.

    Returns:
        A row each: `trial`, counted from 1; `score`; whether it was `pruned` and whether it `won`;
        `best`, the best score so far of complete trials, since a pruned one cannot win, or None
        where there is none yet.
    """
    up = is_higher_better(record.metric)
    rows: list[dict[str, Any]] = []
    best = None
    for trial in record.scored:
        score = scale(record.metric, trial.score)
        if trial.state == "complete" and score is not None:
            best = score if best is None else max(best, score) if up else min(best, score)
        rows.append(
            {
                "trial": trial.number + 1,
                "score": score,
                "best": best,
                "pruned": trial.state == "pruned",
                "won": trial.number == record.best,
            }
        )
    return rows


def score_span(record: SearchRecord) -> Point:
    """An axis for most scores and the defaults', without the few that went quite wrong."""
    rows, sign = trial_rows(record), 1 if is_higher_better(record.metric) else -1
    values = sign * np.array([row["score"] for row in rows])
    top = float(values.max())
    usual = top - _REACH * (top - float(np.quantile(values, 0.25)))
    must = [sign * row["score"] for row in rows if row["trial"] == 1]
    low, high = sorted((sign * min([max(float(values.min()), usual), *must]), sign * top))
    margin = 0.07 * (high - low) or 0.02 * abs(high) or 1.0
    return low - margin, high + margin


def option_panels(record: SearchRecord) -> list[dict[str, Any]]:
    """The options that a picture shows, most important first.

    Returns:
        A row each: its `name` in plain words; how much of the variance of scores over trials it
        explains, `importance` in percent, or None; `marks`, places from 0 to 1 on its axis with
        their names; `places` of the trials by number from 1, where they have one.
    """
    several = len(record.ranges) > 1
    panels = []
    for name in shown_options(record):
        range_, trials = record.ranges[name], record.scored
        tried = [trial.options[name] for trial in trials if name in trial.options]
        places = {t.number + 1: _place(range_, tried, t.options.get(name)) for t in trials}
        share = record.importance.get(name) if several else None
        panels.append(
            {
                "name": option_name(name),
                "importance": None if share is None else 100 * share,
                "marks": _marks(range_, tried),
                "places": {trial: place for trial, place in places.items() if place is not None},
            }
        )
    return panels


def _place(range_: Mapping[str, Any], tried: Sequence[Any], value: Any) -> float | None:
    """Where a value stands on its axis; None for one that is missing or has no logarithm."""
    if range_["kind"] == "choices":
        values = _choices(range_, tried)
        return None if value not in values else _even(values.index(value), len(values))
    if not _is_number(value) or (range_["log"] and value <= 0):
        return None
    low, high = (_moved(end, range_["log"]) for end in _ends(range_, tried))
    return (_moved(value, range_["log"]) - low) / (high - low) if high > low else 0.5


def _marks(range_: Mapping[str, Any], tried: Sequence[Any]) -> list[tuple[float, str]]:
    if range_["kind"] == "choices":
        values = _choices(range_, tried)
        return [(_even(at, len(values)), option_value(v)) for at, v in enumerate(values)]
    low, high = _ends(range_, tried)
    if low == high:
        return [(0.5, option_value(low))]
    return [(0.0, option_value(low)), (1.0, option_value(high))]


def _even(at: int, count: int) -> float:
    return at / (count - 1) if count > 1 else 0.5


def _choices(range_: Mapping[str, Any], tried: Sequence[Any]) -> list[Any]:
    """A default need not be among the values that a search may try."""
    values = list(range_["values"])
    for value in tried:
        if value not in values:
            values.append(value)
    return values


def _ends(range_: Mapping[str, Any], tried: Sequence[Any]) -> Point:
    """Those of the range; a default may lie outside."""
    known = [value for value in tried if _is_number(value) and (value > 0 or not range_["log"])]
    return min([range_["low"], *known]), max([range_["high"], *known])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _moved(value: float, log: bool) -> float:
    return math.log(value) if log else float(value)


def draw_search(record: SearchRecord, color: str) -> str:
    """Scores by trial, and below them by the values of each option, on one scale of scores.

    A search in which no trial has a score cannot be drawn.

    Args:
        record: the search.
        color: of its strategy.
    """
    rows, panels, limits = trial_rows(record), option_panels(record), score_span(record)
    deep = math.ceil(len(panels) / 2)
    with plots.picture(f"Search of {record.strategy}", 4.7, 2.3 + 1.55 * deep) as plot:
        plot.figure.suptitle(
            record.strategy, x=0.02, ha="left", fontsize=11, color=color, fontweight="bold"
        )
        grid = plot.figure.add_gridspec(1 + deep, 2, height_ratios=[1.3] + [1] * deep)
        history = plot.figure.add_subplot(grid[0, :])
        _draw_history(history, record, rows, limits, color)
        for at, panel in enumerate(panels):
            across = at % 2 if len(panels) > 1 else slice(None)
            axes = plot.figure.add_subplot(grid[1 + at // 2, across], sharey=history)
            _draw_option(axes, panel, rows, limits, color)
            axes.tick_params(axis="y", labelleft=at % 2 == 0)
    return plot.svg


def _draw_history(
    axes: "Axes", record: SearchRecord, rows: Rows, limits: Point, color: str
) -> None:
    """The best score so far as a line, kept up to the last trial, and the defaults' score."""
    last = max(trial.number for trial in record.trials) + 1
    steps = [*rows, {**rows[-1], "trial": last}]
    first = next((row["score"] for row in rows if row["trial"] == 1), None)
    if first is not None:
        inside = _name_side(first, limits, is_higher_better(record.metric))
        draw_level(axes, first, color=GREY, style="dashed", name="defaults", inside=inside)
    plots.lines(axes, steps, "trial", "best", color=color, step=True)
    _draw_trials(axes, rows, "trial", limits, color)
    label_axes(
        axes,
        x="Trial",
        y=axis_label(record.metric),
        xlim=(0.5, last + 0.5),
        ylim=limits,
        ticks=10,
    )


def _name_side(height: float, limits: Point, up: bool) -> str:
    """Which edge of its name touches a line: the name stands on the worse side, if it has room."""
    low, high = limits
    room = (height - low if up else high - height) / (high - low)
    return "top" if up == (room > _ROOM) else "bottom"


def _draw_option(
    axes: "Axes", panel: Mapping[str, Any], rows: Rows, limits: Point, color: str
) -> None:
    places = panel["places"]
    own = [{**row, "place": places[row["trial"]]} for row in rows if row["trial"] in places]
    _draw_trials(axes, own, "place", limits, color)
    marks = _fitting(panel["marks"])
    axes.set_xticks([at for at, _ in marks], [name for _, name in marks], fontsize=8)
    share = panel["importance"]
    explained = "" if share is None else f" · {_percent(share)}"
    axes.set_title(panel["name"] + explained, loc="left", fontsize=9)
    label_axes(axes, xlim=(-0.06, 1.06))


def _draw_trials(axes: "Axes", rows: Rows, x: str, limits: Point, color: str) -> None:
    """Dots; pruned trials as crosses, those beyond the scale as triangles, the winner on top."""
    low, high = limits
    won = [row for row in rows if row["won"]]
    inside = [row for row in rows if low <= row["score"] <= high and not row["won"]]
    for pruned, marker in ((False, "o"), (True, "x")):
        own = [row for row in inside if row["pruned"] == pruned]
        plots.scatter(axes, own, x, "score", color=color, marker=marker, size=24, alpha=0.6)
    for edge, marker in ((low, "v"), (high, "^")):
        beyond = [
            row for row in rows if (row["score"] < low if edge == low else row["score"] > high)
        ]
        at_edge = [{**row, "score": edge} for row in beyond]
        plots.scatter(axes, at_edge, x, "score", color=color, marker=marker, size=32, clip=False)
    plots.scatter(axes, won, x, "score", color=INK, size=50)


def _percent(share: float) -> str:
    return f"{share:.0f}%" if share >= 0.5 or not share else "<1%"


def _fitting(marks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Marks with names that fit: on two lines in turn, or the first and the last, shortened."""
    if sum(len(name) + 1 for _, name in marks) <= _LETTERS:
        return list(marks)
    if all(sum(len(name) + 1 for _, name in marks[turn::2]) <= _LETTERS for turn in (0, 1)):
        return [(at, "\n" * (number % 2) + name) for number, (at, name) in enumerate(marks)]
    room = _LETTERS // 2 - 1
    ends = (marks[0], marks[-1])
    return [(at, name if len(name) <= room else f"{name[: room - 1]}…") for at, name in ends]
