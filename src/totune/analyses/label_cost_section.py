"""What learning curves over sizes of the training set say: in words, as tables, and drawn."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from totune.analyses.base import Rows
from totune.report import formatting, plots
from totune.report.axes import GREY, INK, draw_level, label_axes, log_axis
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word

if TYPE_CHECKING:
    from totune.statistics import Summary

BEST = "best of each"  # the pair of the best untuned and the best tuned strategy, by dev score

Facts = Mapping[str, Any]


def label_section(title: str, rows: Rows, facts: Facts) -> Section:
    """Tables and pictures of what `LabelCost` measured."""
    pictures = [Picture(_draw_curves(rows, facts), _curves_caption(facts))]
    tables = [_score_table(rows, facts)]
    if facts["gains"]:
        pictures.append(Picture(_draw_gains(facts), _gains_caption(facts)))
        tables.append(_gain_table(facts))
    paragraphs = [*_findings(facts), *_steps(rows, facts)]
    return Section(title, tuple(paragraphs), _trouble(rows), tuple(tables), tuple(pictures))


def _test_scores(rows: Rows, strategy: str, size: int) -> "Summary | None":
    """Test scores of a strategy at one size over seeds; None where none is known."""
    from totune.statistics import summary

    own = [row for row in rows if (row["strategy"], row["size"]) == (strategy, size)]
    values = [row["test"] for row in own if row["test"] is not None]
    return summary(values) if values else None


# Figures


def curve_rows(rows: Rows, facts: Facts) -> list[dict[str, Any]]:
    """A row per strategy and size with known scores: mean and 95% interval over seeds.

    Bounded metrics are in points; `low` and `high` are None for one seed.
    """
    curves = []
    for strategy in facts["strategies"]:
        for size in facts["sizes"]:
            scores = _test_scores(rows, strategy, size)
            if scores is not None:
                ends = {"mean": scores.mean, "low": scores.low, "high": scores.high}
                scaled = {name: plots.scale(facts["metric"], end) for name, end in ends.items()}
                curves.append({"strategy": strategy, "size": size, **scaled})
    return curves


def _draw_curves(rows: Rows, facts: Facts) -> str:
    """A line with a band per strategy over the logarithm of the size, and a dot per run."""
    metric, colors = facts["metric"], plots.colors_of(facts["strategies"])
    runs = [
        {**row, "score": plots.scale(metric, row["test"])}
        for row in rows
        if row["test"] is not None
    ]
    scores = [row["score"] for row in runs]
    low, high = min(scores), max(scores)
    margin = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    title = f"{formatting.metric_label(metric)} by training rows"
    with plots.picture(title, 4.7, 3.6) as plot:
        one: dict[str, Any] = {"by": "strategy", "color": colors}
        band = ("low", "high")
        plots.lines(plot.axes, curve_rows(rows, facts), "size", "mean", **one, band=band)
        plots.scatter(plot.axes, runs, "size", "score", **one, size=20, alpha=0.6)
        limits = (low - margin, high + margin)
        label_axes(plot.axes, x="Training rows", y=plots.axis_label(metric), ylim=limits)
        log_axis(plot.axes, *_size_axis(facts["sizes"]))
        plot.legend(columns=2)
    return plot.svg


def _draw_gains(facts: Facts) -> str:
    """Each pair's gain with its interval over the logarithm of the size; above zero tuning pays."""
    metric, pairs = facts["metric"], list(dict.fromkeys(gain["pair"] for gain in facts["gains"]))
    colors = dict(zip(pairs, (INK, plots.PALETTE[0]), strict=False))
    # Pairs stand a little beside each other, so that their intervals do.
    shift = {pair: 1.05 ** (at - (len(pairs) - 1) / 2) for at, pair in enumerate(pairs)}
    rows = [
        {
            "pair": gain["pair"],
            "at": gain["size"] * shift[gain["pair"]],
            **{name: plots.scale(metric, gain[name]) for name in ("gain", "low", "high")},
        }
        for gain in facts["gains"]
    ]
    with plots.picture("What tuning gains by training rows", 4.7, 3.6) as plot:
        draw_level(plot.axes, 0, color=GREY)
        interval = ("low", "high")
        line: dict[str, Any] = {"by": "pair", "color": colors, "width": 1.3, "marker": 4}
        plots.lines(plot.axes, rows, "at", "gain", **line, interval=interval)
        unit = ", points" if formatting.is_bounded(metric) else ""
        label_axes(plot.axes, x="Training rows", y=f"Gain by tuning{unit}")
        log_axis(plot.axes, *_size_axis(facts["sizes"]))
        plot.legend()
    return plot.svg


def _size_axis(sizes: Sequence[int]) -> tuple[dict[float, str], tuple[float, float]]:
    """Ticks and limits of a logarithmic axis of sizes."""
    return {size: f"{size:,}" for size in sizes}, (sizes[0] / 1.25, sizes[-1] * 1.25)


def _curves_caption(facts: Facts) -> str:
    if facts["seeds"] < 2:
        return "One run per strategy and size, so nothing is known of the spread."
    return "Means of runs (dots); bands: 95% intervals over seeds, cut off where the scale ends."


def _gains_caption(facts: Facts) -> str:
    rows = f"{facts['test_rows']:,} test rows"
    if facts["seeds"] < 2:
        return "What tuning gains; one seed gives no interval."
    return f"What tuning gains: 95% intervals over seeds and {rows}. Above zero tuning pays."


# Tables


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
    scores = _test_scores(rows, strategy, size)
    if scores is None:
        return word("", "failed")
    text = formatting.score(metric, scores.mean)
    if scores.n < 2:
        return number(scores.mean, text)
    text = f"{text} ± {formatting.spread(metric, scores.std)}"
    return number(scores.mean, text, formatting.interval(metric, scores.low, scores.high))


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


# Sentences


def _findings(facts: Facts) -> list[str]:
    """Where tuning begins to pay, for the best of each kind first."""
    if not facts["gains"]:
        return [_incomparable(facts)]
    begins = sorted(facts["begins"], key=lambda begin: begin["pair"] != BEST)
    return [_finding(begin, facts) for begin in begins]


def _incomparable(facts: Facts) -> str:
    """Why no gain can be reported."""
    untuned, every = len(facts["untuned"]), len(facts["strategies"])
    if 0 < untuned < every:
        return (
            "At no size has a strategy that tunes the encoder and one that does not a usable run, "
            "so there is nothing to compare."
        )
    what = "tunes the encoder" if untuned else "leaves the encoder as it is"
    return f"No strategy here {what}, so there is nothing to compare."


def _finding(begin: Mapping[str, Any], facts: Facts) -> str:
    own = [gain for gain in facts["gains"] if gain["pair"] == begin["pair"]]
    at = begin["size"]
    if at is None:
        return _never(own[-1], begin["pair"], facts)
    gain = next(gain for gain in own if gain["size"] == at)
    names = f"{gain['tuned']} is credibly better than {gain['untuned']}"
    if not begin["stays"]:
        where = f"Tuning first pays at {at:,} training rows, though not at every larger size:"
    elif own[0] is gain:
        where = f"Tuning pays at every size that was tried, from {at:,} training rows on:"
    else:
        where = f"Tuning begins to pay at {at:,} training rows:"
    return f"{where} there {names}, by {_describe_gain(gain, facts)}."


def _never(last: Mapping[str, Any], pair: str, facts: Facts) -> str:
    who = "the best tuned strategy" if pair == BEST else last["tuned"]
    other = "the best that is not" if pair == BEST else last["untuned"]
    why = f"At none of these sizes is {who} credibly better than {other}"
    if last["low"] is None:
        why = "Where tuning begins to pay cannot be estimated from one seed"
    return (
        f"{why}: at {last['size']:,} training rows {last['tuned']} against {last['untuned']} "
        f"gains {_describe_gain(last, facts)}."
    )


def _describe_gain(gain: Mapping[str, Any], facts: Facts) -> str:
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
    listed = ", ".join(f"{strategy} {count:,}" for strategy, count in steps.items())
    return [
        f"Epochs are each strategy's own at every size, so few rows are few steps: of {first:,} "
        f"rows {listed}. More epochs may move the point where tuning begins to pay."
    ]


def _trouble(rows: Rows) -> tuple[str, ...]:
    """A warning for each strategy and size with runs that failed or are degenerate."""
    counts = Counter((row["strategy"], row["size"]) for row in rows if row["trouble"])
    return tuple(
        f"{strategy} at {size:,} training rows: {count} run{'s' if count > 1 else ''} failed or "
        "gave one answer for every row."
        for (strategy, size), count in counts.items()
    )
