"""Learning curves over sizes of the training set: figures as plain data, drawn, and tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from totune.analyses.measuring.label_gains import BEST
from totune.report import formatting
from totune.report.canvas import STYLE, as_svg, axis_label, color_of, sheet
from totune.report.document import Picture, Section
from totune.report.figures import scale
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.statistics import summary

Rows = Sequence[Mapping[str, Any]]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """One strategy at one size; ends of the 95% interval over seeds are None for one seed."""

    size: int
    values: tuple[float, ...]
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LabelCurve:
    """One strategy over sizes; a bounded metric is in points."""

    strategy: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class LabelFigure:
    """Every strategy over sizes.

    Attributes:
        limits: of the axis of scores: all means and runs, and of the intervals what fits without
            making the rest small.
    """

    metric: str
    strategies: tuple[str, ...]
    sizes: tuple[int, ...]
    curves: tuple[LabelCurve, ...]
    limits: tuple[float, float]


def label_section(title: str, rows: Rows, facts: Facts) -> Section:
    """Tables and pictures of what `LabelCost` measured."""
    figure = label_figure(rows, facts)
    pictures = [Picture(draw_curves(figure), _curves_caption(facts))]
    tables = [_score_table(rows, facts)]
    if facts["gains"]:
        pictures.append(Picture(draw_gains(facts), _gains_caption(facts)))
        tables.append(_gain_table(facts))
    paragraphs = [*_findings(facts), *_steps(rows, facts)]
    return Section(title, tuple(paragraphs), _trouble(rows), tuple(tables), tuple(pictures))


def label_figure(rows: Rows, facts: Facts) -> LabelFigure:
    """The figure of these rows."""
    metric, sizes = facts["metric"], tuple(facts["sizes"])
    curves = []
    for strategy in facts["strategies"]:
        points = (_point(strategy, size, rows, metric) for size in sizes)
        curves.append(LabelCurve(strategy, tuple(p for p in points if p is not None)))
    shown = [value for curve in curves for point in curve.points for value in point.values]
    low, high = min(shown), max(shown)
    margin = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    limits = low - margin, high + margin
    return LabelFigure(metric, tuple(facts["strategies"]), sizes, tuple(curves), limits)


def draw_curves(figure: LabelFigure) -> str:
    """A line with a band per strategy over the logarithm of the size, and a dot per run."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.6)
        for curve in figure.curves:
            _draw_curve(axes, curve, color_of(curve.strategy, figure.strategies))
        axes.set_ylim(*figure.limits)
        axes.set_ylabel(axis_label(figure.metric))
        _draw_sizes(axes, figure.sizes)
        canvas.legend(loc="outside lower left", frameon=False, fontsize=8.5, ncols=2)
        return as_svg(canvas, f"{formatting.metric_label(figure.metric)} by training rows")


def draw_gains(facts: Facts) -> str:
    """Each pair's gain with its interval over the logarithm of the size; above zero tuning pays."""
    metric, pairs = facts["metric"], list(dict.fromkeys(gain["pair"] for gain in facts["gains"]))
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.6)
        axes.axhline(0, color="#66717c", linewidth=1)
        for place, pair in enumerate(pairs):
            own = [gain for gain in facts["gains"] if gain["pair"] == pair]
            _draw_gain(axes, own, metric, 1.05 ** (place - (len(pairs) - 1) / 2), place)
        axes.set_ylabel(f"Gain by tuning{', points' if formatting.is_bounded(metric) else ''}")
        _draw_sizes(axes, facts["sizes"])
        canvas.legend(loc="outside lower left", frameon=False, fontsize=8.5)
        return as_svg(canvas, "What tuning gains by training rows")


def _point(strategy: str, size: int, rows: Rows, metric: str) -> Point | None:
    own = [row for row in rows if row["strategy"] == strategy and row["size"] == size]
    values = scale(metric, [row["test"] for row in own if row["test"] is not None])
    if not values:
        return None
    found = summary(values)
    ends = [end if math.isfinite(end) else None for end in (found.low, found.high)]
    return Point(size, values, found.mean, *ends)


def _draw_curve(axes: Axes, curve: LabelCurve, color: str) -> None:
    sizes = [point.size for point in curve.points]
    axes.plot(sizes, [p.mean for p in curve.points], color=color, lw=1.6, label=curve.strategy)
    for point in curve.points:
        axes.scatter([point.size] * len(point.values), point.values, s=9, color=color, alpha=0.6)
    low = [math.nan if point.low is None else point.low for point in curve.points]
    high = [math.nan if point.high is None else point.high for point in curve.points]
    axes.fill_between(sizes, low, high, color=color, alpha=0.13, linewidth=0)


def _draw_gain(
    axes: Axes, gains: Sequence[Mapping[str, Any]], metric: str, shift: float, place: int
) -> None:
    color = ("#26303a", "#0072B2")[place % 2]
    sizes = [gain["size"] * shift for gain in gains]
    middles = scale(metric, [gain["gain"] for gain in gains])
    axes.plot(sizes, middles, color=color, marker="o", ms=4, lw=1.3, label=gains[0]["pair"])
    for size, gain in zip(sizes, gains, strict=True):
        if gain["low"] is not None:
            axes.plot([size] * 2, scale(metric, (gain["low"], gain["high"])), color=color, lw=1.1)


def _draw_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with the sizes as ticks, those that would touch the one before unnamed."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    whole = math.log10(sizes[-1] / sizes[0]) + 2 * math.log10(1.25)
    names, free = [], -math.inf
    for size in sizes:
        name, at = f"{size:,}", math.log10(size)
        width = 0.022 * len(name) * whole
        named = at - width / 2 >= free
        names.append(name if named else "")
        free = at + width / 2 if named else free
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(names)
    axes.set_xlabel("Training rows")
    axes.grid(axis="y")


def _curves_caption(facts: Facts) -> str:
    if facts["seeds"] < 2:
        return "One run per strategy and size, so nothing is known of the spread."
    return "Means of runs (dots); bands: 95% intervals over seeds, cut off where the scale ends."


def _gains_caption(facts: Facts) -> str:
    rows = f"{facts['test_rows']:,} test rows"
    if facts["seeds"] < 2:
        return "What tuning gains; one seed gives no interval."
    return f"What tuning gains: 95% intervals over seeds and {rows}. Above zero tuning pays."


def _score_table(rows: Rows, facts: Facts) -> Table:
    metric = facts["metric"]
    columns = (Column("Training rows"), *(Column(name) for name in facts["strategies"]))
    lines = []
    for size in facts["sizes"]:
        cells = [_score_cell(name, size, rows, metric) for name in facts["strategies"]]
        lines.append(Row((number(size, f"{size:,}"), *cells)))
    seeds = f"{facts['seeds']} seed{'s' if facts['seeds'] > 1 else ''}"
    note = (
        f"Means ± standard deviations over {seeds}, each of which draws its own rows, and 95% "
        "intervals; runs that give one answer for every row count."
    )
    title = f"Test {formatting.metric_name(metric)} by training rows"
    return Table(title, columns, tuple(lines), (note,))


def _score_cell(strategy: str, size: int, rows: Rows, metric: str) -> Cell:
    own = [row for row in rows if row["strategy"] == strategy and row["size"] == size]
    values = [row["test"] for row in own if row["test"] is not None]
    if not values:
        return word("", "failed")
    found = summary(values)
    text = formatting.score(metric, found.mean)
    if found.n < 2:
        return number(found.mean, text)
    text = f"{text} ± {formatting.spread(metric, found.std)}"
    return number(found.mean, text, formatting.interval(metric, found.low, found.high))


def _gain_table(facts: Facts) -> Table:
    metric = facts["metric"]
    names = ("Training rows", "Not tuned", "Tuned", "Gain", "95% interval", "Tuning pays")
    columns = tuple(Column(name, name in names[:1] + names[3:5]) for name in names)
    rows = tuple(
        Row(
            (
                number(gain["size"], f"{gain['size']:,}"),
                word(gain["untuned"]),
                word(gain["tuned"]),
                number(gain["gain"], formatting.score(metric, gain["gain"], signed=True)),
                Cell(
                    [gain["low"], gain["high"]],
                    formatting.interval(metric, gain["low"], gain["high"], signed=True),
                ),
                word(_verdict(gain)),
            )
        )
        for gain in _primary(facts)
    )
    note = (
        "Intervals over seeds and test rows, each for itself: over many sizes one in twenty misses "
        "by chance. The best of each kind is chosen by dev scores."
    )
    return Table("What tuning gains", columns, rows, (note,))


def _primary(facts: Facts) -> list[Mapping[str, Any]]:
    """The gains of the pair that answers the question: the best of each kind, if there are more."""
    pairs = [gain["pair"] for gain in facts["gains"]]
    pair = BEST if BEST in pairs else pairs[0]
    return [gain for gain in facts["gains"] if gain["pair"] == pair]


def _verdict(gain: Mapping[str, Any]) -> str:
    if gain["low"] is None:
        return "not known"
    if gain["low"] > 0:
        return "yes"
    return "no, it is worse" if gain["high"] < 0 else "open"


def _findings(facts: Facts) -> list[str]:
    """Where tuning begins to pay, for the best of each kind first."""
    if not facts["gains"]:
        kind = "tunes" if len(facts["untuned"]) == len(facts["strategies"]) else "leaves"
        what = "the encoder" if kind == "tunes" else "the encoder as it is"
        return [f"No strategy here {kind} {what}, so there is nothing to compare."]
    begins = sorted(facts["begins"], key=lambda begin: begin["pair"] != BEST)
    return [_finding(begin, facts) for begin in begins]


def _finding(begin: Mapping[str, Any], facts: Facts) -> str:
    own = [gain for gain in facts["gains"] if gain["pair"] == begin["pair"]]
    at = begin["size"]
    if at is None:
        return f"{_never(own[-1], begin['pair'], facts)}"
    gain = next(gain for gain in own if gain["size"] == at)
    names = f"{gain['tuned']} is credibly better than {gain['untuned']}"
    if not begin["stays"]:
        where = f"Tuning first pays at {at:,} training rows, though not at every larger size:"
    elif own[0] is gain:
        where = f"Tuning pays at every size that was tried, from {at:,} training rows on:"
    else:
        where = f"Tuning begins to pay at {at:,} training rows:"
    return f"{where} there {names}, by {_told(gain, facts)}."


def _never(last: Mapping[str, Any], pair: str, facts: Facts) -> str:
    who = "the best tuned strategy" if pair == BEST else last["tuned"]
    other = "the best that is not" if pair == BEST else last["untuned"]
    if last["low"] is None:
        return (
            f"Where tuning begins to pay cannot be told from one seed: at {last['size']:,} "
            f"training rows {last['tuned']} gains {_told(last, facts)} over {last['untuned']}."
        )
    return (
        f"At none of these sizes is {who} credibly better than {other}: at "
        f"{last['size']:,} training rows {last['tuned']} gains {_told(last, facts)} over "
        f"{last['untuned']}."
    )


def _told(gain: Mapping[str, Any], facts: Facts) -> str:
    metric = facts["metric"]
    size = formatting.score(metric, gain["gain"])
    unit = " points" if formatting.is_bounded(metric) else f" of {formatting.metric_name(metric)}"
    if gain["low"] is None:
        return f"{size}{unit}"
    return f"{size}{unit} (95% interval {formatting.interval(metric, gain['low'], gain['high'])})"


def _steps(rows: Rows, facts: Facts) -> list[str]:
    """How few steps the smallest size leaves the strategies that tune."""
    first = facts["sizes"][0]
    steps = {
        row["strategy"]: row["steps"]
        for row in rows
        if row["size"] == first and row["tuned"] and row["steps"]
    }
    if not steps:
        return []
    told = ", ".join(f"{strategy} {count:,}" for strategy, count in steps.items())
    return [
        f"Epochs are each strategy's own at every size, so few rows are few steps: of {first:,} "
        f"rows {told}. More epochs may move the point where tuning begins to pay."
    ]


def _trouble(rows: Rows) -> tuple[str, ...]:
    found: dict[tuple[str, int], int] = {}
    for row in rows:
        if row["trouble"]:
            place = row["strategy"], row["size"]
            found[place] = found.get(place, 0) + 1
    return tuple(
        f"{strategy} at {size:,} training rows: {count} run{'s' if count > 1 else ''} failed or "
        "gave one answer for every row."
        for (strategy, size), count in found.items()
    )
