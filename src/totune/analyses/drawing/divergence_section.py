"""Corpora by their distance: the finding in words, the paper's table, and a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from totune.analyses.base import Values
from totune.information.divergence import UNITS, LogBase, largest_divergence
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.canvas import PALETTE, STYLE, as_svg, axis_label, sheet
from totune.report.document import Picture, Section
from totune.report.labels import HEIGHT, place_labels
from totune.report.phase_figure import scale
from totune.report.table import Cell, Column, Row, Table, drop_empty_columns, number, word
from totune.statistics.ranks import LEVEL

Found = Mapping[str, Any]

_LETTER = 6.0  # points that a letter of a label takes
_SHEET = (235.0, 165.0)  # points, about what its axes leave of the picture


@dataclass(frozen=True)
class DivergencePoint:
    """A corpus: its distance, and frozen minus tuned, in points where the metric is bounded."""

    corpus: str
    divergence: float
    difference: float


@dataclass(frozen=True)
class DivergenceFigure:
    """What a frozen encoder gains over a tuned one by how far a corpus lies from the reference."""

    metric: str
    reference: str
    unit: str
    strategies: tuple[str, str]
    points: tuple[DivergencePoint, ...]


def divergence_section(title: str, values: Values) -> Section:
    """The analysis drawn; a picture where two corpora or more have scores."""
    rows = sorted(values.rows, key=lambda row: -row["divergence"])
    figure = divergence_figure(rows, values.facts)
    pictures: tuple[Picture, ...] = ()
    if len(figure.points) > 1:
        side = "Above" if _rises(figure.metric) else "Below"
        caption = f"A point is a corpus. {side} 0 {figure.strategies[0]} is the better of the two."
        pictures = (Picture(draw_divergence(figure), caption),)
    table = divergence_table(title, rows, values.facts)
    return Section(title, finding(rows, values.facts), tables=(table,), pictures=pictures)


def _base(facts: Found) -> LogBase:
    """The base of the logarithm; 2 in findings from before it was an option."""
    base: LogBase = facts.get("base", 2)
    return base


def _rises(metric: str) -> bool:
    """The direction of progress; up for scores of a file, which name no metric."""
    return metric not in METRICS or METRICS[metric].higher_is_better


def finding(rows: Sequence[Found], facts: Found) -> tuple[str, ...]:
    """What was found, the main thing first; rows with the furthest corpus first."""
    correlation = facts["correlation"]
    scored = sum(row["difference"] is not None for row in rows)
    if correlation is not None:
        return _related(correlation, facts), _distances(rows, facts), _strength(correlation)
    if scored:
        return _distances(rows, facts), (
            "A rank correlation of distance and scores needs at least three corpora with scores "
            f"that are not all alike; there {'is' if scored == 1 else 'are'} {scored} with scores."
        )
    return (_distances(rows, facts),)


def _related(correlation: Found, facts: Found) -> str:
    frozen, tuned = facts["frozen"], facts["tuned"]
    rho = f"{round(correlation['rho'], 2) + 0.0:.2f}".replace("-", "−")
    numbers = f"Spearman's rho is {rho}, p {_equals(correlation['p'])}"
    if correlation["p"] >= LEVEL:
        return (
            f"Over {correlation['n']} corpora, the distance from {facts['reference']} has no "
            f"significant rank correlation with the lead of {frozen} over {tuned}: {numbers}."
        )
    better = (correlation["rho"] > 0) == _rises(facts["metric"])
    how = "better" if better else "worse"
    return (
        f"The further a corpus lies from {facts['reference']}, the {how} {frozen} does against "
        f"{tuned}: over {correlation['n']} corpora {numbers}."
    )


def _equals(p: float) -> str:
    told = formatting.p_value(p)
    return told.replace("<", "< ") if "<" in told else f"= {told}"


def _strength(correlation: Found) -> str:
    """What so few corpora can show at all."""
    n, needed = correlation["n"], correlation["needed"]
    how = f"all orders of {n}" if correlation["exact"] else f"random orders of {n}"
    test = f"The p-value is that of a two-sided permutation test over {how} corpora."
    if needed is None:
        return f"{test} With so few not even a perfect ranking has one below {LEVEL}."
    if needed > 1 - 1e-9:
        return (
            f"{test} With so few only a perfect ranking has one below {LEVEL}: a p-value above "
            "that says little."
        )
    return (
        f"{test} With so many, rho must be {needed:.2f} or more from 0 for one below {LEVEL}; a "
        "p-value above that does not show that there is no relation."
    )


def _distances(rows: Sequence[Found], facts: Found) -> str:
    first, last, base = rows[0], rows[-1], _base(facts)
    furthest = f"{first['divergence']:.3f} {UNITS[base]}"
    span = (
        "on a scale from 0 (every term as frequent) to "
        f"{largest_divergence(base):.3g} (no term in common)."
    )
    if len(rows) == 1:
        return f"{first['corpus']} lies {furthest} from {facts['reference']}, {span}"
    return (
        f"{first['corpus']} lies furthest from {facts['reference']} with {furthest}, "
        f"{last['corpus']} nearest with {last['divergence']:.3f}, {span}"
    )


def divergence_table(title: str, rows: Sequence[Found], facts: Found) -> Table:
    """The columns of Peters et al. (2019, Table 6), and what the divergence rests on."""
    metric = facts["metric"]
    columns = (
        Column("Corpus", numeric=False),
        Column(f"{facts['frozen']}, {formatting.metric_name(metric)}"),
        Column(f"minus {facts['tuned']}"),
        Column(f"Divergence, {UNITS[_base(facts)]}"),
        Column("By size alone"),
        Column("Terms"),
        Column("Compared"),
        Column("Most distinctive terms", numeric=False),
    )
    notes = (
        f"Reference: {facts['reference']}, {facts['reference_terms']:,} terms in "
        f"{facts['reference_texts']:,} texts. Divergence: Jensen-Shannon, in {UNITS[_base(facts)]} "
        f"(logarithms to base {_base(facts)}), between the shares of the "
        f"{facts['vocabulary']:,} most frequent terms of all corpora together. By size alone: "
        "that of a sample of the reference, drawn word by word, with as many terms as the corpus. "
        "Compared: how many of a corpus's terms are among the most frequent.",
    )
    made = tuple(Row(_cells(row, metric)) for row in rows)
    return drop_empty_columns(Table(title, columns, made, notes))


def _cells(row: Found, metric: str) -> tuple[Cell, ...]:
    return (
        word(row["corpus"], f"{row['texts']:,} texts"),
        number(row["frozen"], formatting.score(metric, row["frozen"])),
        number(row["difference"], _signed(metric, row["difference"])),
        number(row["divergence"], f"{row['divergence']:.3f}"),
        number(row["by_size"], f"{row['by_size']:.3f}"),
        number(row["terms"], formatting.count(row["terms"])),
        number(row["covered"], formatting.share(row["covered"], 1)),
        word(row["distinctive"]),
    )


def _signed(metric: str, value: float | None) -> str:
    """A difference: points with one decimal, or two digits."""
    if value is None or formatting.is_bounded(metric):
        return formatting.score(metric, value, signed=True)
    return ("+" if value > 0 else "") + formatting.significant(value, 2)


def divergence_figure(rows: Sequence[Found], facts: Found) -> DivergenceFigure:
    """The corpora whose scores are known."""
    metric = facts["metric"]
    points = tuple(
        DivergencePoint(row["corpus"], row["divergence"], scale(metric, [row["difference"]])[0])
        for row in rows
        if row["difference"] is not None
    )
    strategies = (facts["frozen"], facts["tuned"])
    return DivergenceFigure(metric, facts["reference"], UNITS[_base(facts)], strategies, points)


def draw_divergence(figure: DivergenceFigure) -> str:
    """A named point per corpus."""
    across = [point.divergence for point in figure.points]
    up = [point.difference for point in figure.points]
    frozen, tuned = figure.strategies
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(4.7, 3.4)
        axes.axhline(0, color="#9aa4ae", linewidth=0.8)
        axes.scatter(across, up, s=40, color=PALETTE[0], zorder=3)
        axes.set_xlim(*_limits(across))
        axes.set_ylim(*_limits([*up, 0.0]))
        _name_points(axes, figure)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel(f"Divergence from {figure.reference}, {figure.unit}")
        axes.set_ylabel(f"{frozen} \u2212 {tuned}\n{axis_label(figure.metric)}")
        axes.grid()
        return as_svg(canvas, f"{frozen} against {tuned} by divergence")


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """An axis with room on both sides for names."""
    low, high = min(values), max(values)
    margin = 0.15 * (high - low) or 0.1 * abs(high) or 0.1
    return low - margin, high + margin


def _name_points(axes: Axes, figure: DivergenceFigure) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    places = [
        (
            _SHEET[0] * (point.divergence - left) / (right - left),
            _SHEET[1] * (point.difference - bottom) / (top - bottom),
        )
        for point in figure.points
    ]
    widths = [_LETTER * len(point.corpus) for point in figure.points]
    for point, offset in zip(figure.points, place_labels(places, widths, _SHEET), strict=True):
        far = {"arrowstyle": "-", "color": PALETTE[0], "linewidth": 0.7}
        axes.annotate(
            point.corpus,
            (point.divergence, point.difference),
            xytext=offset,
            textcoords="offset points",
            color=PALETTE[0],
            arrowprops=far if abs(offset[1] + HEIGHT / 2) > HEIGHT else None,
        )
