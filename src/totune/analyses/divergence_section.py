"""Corpora by their distance: the finding in words, the paper's table, and a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from totune.analyses.base import AnalysisResult, Rows
from totune.information.divergence import UNITS, LogBase, largest_divergence
from totune.metrics import is_higher_better
from totune.report import formatting, plots
from totune.report.axes import draw_level, label_axes
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, drop_empty_columns, number, word

Facts = Mapping[str, Any]


def divergence_section(title: str, result: AnalysisResult) -> Section:
    """The analysis drawn; a picture where two corpora or more have scores."""
    rows, facts = sorted(result.rows, key=lambda row: -row["divergence"]), result.facts
    table, pictures = divergence_table(title, rows, facts), _pictures(rows, facts)
    return Section(title, finding(rows, facts), tables=(table,), pictures=pictures)


def _base(facts: Facts) -> LogBase:
    """The base of the logarithm; 2 in findings from before it was an option."""
    base: LogBase = facts.get("base", 2)
    return base


def finding(rows: Rows, facts: Facts) -> tuple[str, ...]:
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


def _related(correlation: Facts, facts: Facts) -> str:
    from totune.statistics.ranks import LEVEL

    frozen, tuned = facts["frozen"], facts["tuned"]
    rho = f"{round(correlation['rho'], 2) + 0.0:.2f}".replace("-", "−")
    p = formatting.p_value(correlation["p"])
    equals = p.replace("<", "< ") if "<" in p else f"= {p}"
    numbers = f"Spearman's rho is {rho}, p {equals}"
    if correlation["p"] >= LEVEL:
        return (
            f"Over {correlation['n']} corpora, the distance from {facts['reference']} has no "
            f"significant rank correlation with the lead of {frozen} over {tuned}: {numbers}."
        )
    better = (correlation["rho"] > 0) == is_higher_better(facts["metric"])
    how = "better" if better else "worse"
    return (
        f"The further a corpus lies from {facts['reference']}, the {how} {frozen} does against "
        f"{tuned}: over {correlation['n']} corpora {numbers}."
    )


def _strength(correlation: Facts) -> str:
    """What so few corpora can show at all."""
    from totune.statistics.ranks import LEVEL

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


def _distances(rows: Rows, facts: Facts) -> str:
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


def divergence_table(title: str, rows: Rows, facts: Facts) -> Table:
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


def _cells(row: Facts, metric: str) -> tuple[Cell, ...]:
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


def _pictures(rows: Rows, facts: Facts) -> tuple[Picture, ...]:
    """A named point per corpus: frozen minus tuned by distance from the reference."""
    metric, frozen, tuned = facts["metric"], facts["frozen"], facts["tuned"]
    points = [
        {**row, "lead": plots.scale(metric, row["difference"])}
        for row in rows
        if row["difference"] is not None
    ]
    if len(points) < 2:
        return ()
    with plots.picture(f"{frozen} against {tuned} by divergence", 4.7, 3.4) as plot:
        draw_level(plot.axes, 0)
        label_axes(
            plot.axes,
            x=f"Divergence from {facts['reference']}, {UNITS[_base(facts)]}",
            y=f"{frozen} − {tuned}\n{plots.axis_label(metric)}",
            xlim=_limits([point["divergence"] for point in points]),
            ylim=_limits([0.0, *(point["lead"] for point in points)]),
            grid="both",
        )
        color = plots.PALETTE[0]
        plots.scatter(plot.axes, points, "divergence", "lead", color=color, size=40, names="corpus")
    side = "Above" if is_higher_better(metric) else "Below"
    caption = f"A point is a corpus. {side} 0 {frozen} is the better of the two."
    return (Picture(plot.svg, caption),)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis with room on both sides for names."""
    low, high = min(values), max(values)
    margin = 0.15 * (high - low) or 0.1 * abs(high) or 0.1
    return low - margin, high + margin
