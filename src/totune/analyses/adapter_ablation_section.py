"""What removing adapters span by span has shown: a sentence, tables and heatmaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from totune.adapters.sharing import Span
from totune.analyses.base import AnalysisResult, Rows, degenerate_warning, mean_of_known
from totune.metrics import METRICS
from totune.report import formatting, plots
from totune.report.axes import add_heading, label_axes
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import RunRecord

SMALL = 0.1  # up to this share of what removing all adapters costs, one layer's matter little
_SINGLES = 5  # single layers in the table
_LEAST_LIMIT = 0.1  # percent, so that a heatmap of zeros has a scale


class SpanMean(NamedTuple):
    """Means over seeds; None where no seed has a value.

    Attributes:
        score: mean score without the adapters of the span.
        change: mean relative change of the score.
        spread: standard deviation of the changes; None for fewer than two seeds.
    """

    score: float | None
    change: float | None
    spread: float | None


@dataclass(frozen=True)
class StrategyAblation:
    """The models of one strategy.

    Attributes:
        strategy: label of the strategy.
        prefix: what sentences and titles about it begin with where there are others, or "".
        seeds: number of its models.
        metric: name of the metric.
        split: name of the scored split.
        layers: those whose adapters can be removed alone.
        intact: mean score with all adapters.
        spans: what is left without each span, worst first.
    """

    strategy: str
    prefix: str
    seeds: int
    metric: str
    split: str
    layers: tuple[Span, ...]
    intact: float | None
    spans: Mapping[Span, SpanMean]

    @property
    def whole(self) -> Span:
        return self.layers[0][0], self.layers[-1][1]

    @property
    def low_is_bad(self) -> bool:
        return METRICS[self.metric].higher_is_better

    @property
    def is_known(self) -> bool:
        return any(mean.change is not None for mean in self.spans.values())

    @property
    def singles(self) -> list[Span]:
        """Single layers, the one that costs most first."""
        return [span for span in self.spans if span in self.layers]

    def cost(self, span: Span) -> float:
        """The relative change for the worse; NaN where it is not known."""
        change = self.spans[span].change
        if change is None:
            return float("nan")
        return -change if self.low_is_bad else change

    def worst_by_length(self) -> list[Span]:
        """Of the spans of two layers, of three, ... the one that costs most."""
        worst: dict[int, Span] = {}
        starts = [first for first, _ in self.layers]
        ends = [last for _, last in self.layers]
        for first, last in self.spans:
            worst.setdefault(ends.index(last) - starts.index(first) + 1, (first, last))
        return [worst[length] for length in sorted(worst) if length > 1]


def spans_of(layers: Sequence[Span]) -> list[Span]:
    """Every continuous span of `layers`, as layers first..last."""
    return [(first, last) for at, (first, _) in enumerate(layers) for _, last in layers[at:]]


def ablation_section(
    title: str, result: AnalysisResult, records: Sequence[RunRecord] = ()
) -> Section:
    """The finding in words, a heatmap per strategy, the worst layers and spans."""
    found = summaries(result)
    limit = _limit(found)
    pictures = tuple(_picture(each, limit) for each in found if each.is_known)
    tables = tuple(table for each in found for table in _tables(each))
    finding = " ".join(_finding(each) for each in found)
    halves = " ".join(_halves(each) for each in found if len(each.layers) > 1 and each.is_known)
    paragraphs = tuple(filter(None, (finding, halves, _method(result.facts))))
    runs = ((row["strategy"], row["seed"]) for row in result.rows)
    return Section(title, paragraphs, degenerate_warning(runs, records), tables, pictures)


def summaries(result: AnalysisResult) -> list[StrategyAblation]:
    """Means over seeds, one strategy after another in the order of the rows."""
    strategies = list(dict.fromkeys(row["strategy"] for row in result.rows))
    several = len(strategies) > 1
    return [_summary(name, f"{name}: " if several else "", result) for name in strategies]


def _summary(strategy: str, prefix: str, result: AnalysisResult) -> StrategyAblation:
    rows = [row for row in result.rows if row["strategy"] == strategy]
    facts = result.facts
    layers = tuple((int(first), int(last)) for first, last in facts["layers"])
    means = {span: _mean(rows, span) for span in spans_of(layers)}
    sign = METRICS[facts["metric"]].sign
    order = sorted(means, key=lambda span: (sign * (means[span].change or 0.0), span))
    return StrategyAblation(
        strategy=strategy,
        prefix=prefix,
        seeds=len({row["seed"] for row in rows}),
        metric=facts["metric"],
        split=facts["split"],
        layers=layers,
        intact=mean_of_known([row["intact"] for row in rows]),
        spans={span: means[span] for span in order},
    )


def _mean(rows: Rows, span: Span) -> SpanMean:
    own = [row for row in rows if (row["first"], row["last"]) == span]
    changes = [row["change"] for row in own if row["change"] is not None]
    spread = float(np.std(changes, ddof=1)) if len(changes) > 1 else None
    return SpanMean(mean_of_known([row["score"] for row in own]), mean_of_known(changes), spread)


# Sentences


def _finding(found: StrategyAblation) -> str:
    """Which layers matter, beside what Mohebbi and Rajaee saw."""
    name = formatting.metric_name(found.metric)
    if not found.is_known:
        score = formatting.score(found.metric, found.intact)
        return (
            f"{found.prefix}With all adapters {name} is {score}: of that there is no relative "
            "change."
        )
    verb = "lowers" if found.low_is_bad else "raises"
    everything = found.cost(found.whole)
    if not everything > 0:
        change = percent(found.spans[found.whole].change)
        return (
            f"{found.prefix}Removing all adapters does {name} on {found.split} no harm ({change}): "
            "taken together they do not help there."
        )
    whole = f"{100 * everything:.1f}%"
    if len(found.layers) == 1:
        return (
            f"{found.prefix}Removing the adapters, which all layers share, {verb} {name} by "
            f"{whole}."
        )
    return found.prefix + _compared(found, f"{verb} {name}", whole)


def _compared(found: StrategyAblation, verb: str, whole: str) -> str:
    worst = found.singles[0]
    cost, layer = found.cost(worst), _layers(worst)
    if cost <= SMALL * found.cost(found.whole):
        most = f"by at most {100 * cost:.1f}% ({layer})" if cost > 0 else "not at all"
        return (
            f"Removing one layer's adapters {verb} {most}, removing those of all layers by "
            f"{whole}: each layer's matter little, together they matter much, as with BERT-base on "
            "CoLA in Mohebbi and Rajaee's Figure 8."
        )
    return (
        f"Removing the adapters of {layer} alone {verb} by {100 * cost:.1f}%, more than a tenth "
        f"of the {whole} that removing all of them costs: there single layers matter, unlike with "
        "BERT-base on CoLA in Mohebbi and Rajaee's Figure 8."
    )


def _halves(found: StrategyAblation) -> str:
    """What the lower and the upper layers' adapters are worth."""
    middle = len(found.layers) // 2
    below = found.layers[0][0], found.layers[middle - 1][1]
    above = found.layers[middle][0], found.layers[-1][1]
    whose = f" of {found.strategy}" if found.prefix else ""
    lower, upper = (percent(found.spans[half].change) for half in (below, above))
    return (
        f"Without the lower half{whose} ({_layers(below)}) the score changes by {lower}, without "
        f"the upper half ({_layers(above)}) by {upper}."
    )


def _method(facts: Mapping[str, Any]) -> str:
    computed, naive = facts["block_evaluations"], facts["naive_block_evaluations"]
    return (
        f"Scores are of {formatting.count(facts['rows'])} {facts['split']} rows; nothing was "
        f"trained again. What spans share was computed once: layers ran over batches "
        f"{formatting.count(computed)} times, where running each span on its own takes "
        f"{formatting.count(naive)} ({formatting.significant(naive / computed, 2)} times as many)."
    )


def _layers(span: Span) -> str:
    return f"layer{'s' if span[0] != span[1] else ''} {layer_name(span)}"


def layer_name(span: Span) -> str:
    """Layers by their numbers: "3", or "3–4" of several."""
    first, last = span
    return str(first) if first == last else f"{first}–{last}"


def percent(change: float | None) -> str:
    """A relative change as "−2.1%"; a zero has no sign."""
    if change is None:
        return formatting.MISSING
    text = f"{100 * change:+.1f}"
    return f"{abs(float(text)):.1f}%" if float(text) == 0 else f"{text}%".replace("-", "−")


# The heatmap


def heatmap_rows(found: StrategyAblation) -> list[dict[str, Any]]:
    """A row per first and last layer, by name; `change` in percent, None below the diagonal."""
    changes = {span: mean.change for span, mean in found.spans.items()}
    return [
        {
            "first": layer_name(first),
            "last": layer_name(last),
            "change": None if change is None else 100 * change,
        }
        for first in found.layers
        for last in found.layers
        for change in [changes.get((first[0], last[1]))]
    ]


def _limit(found: Sequence[StrategyAblation]) -> float:
    """The end of the scale that all heatmaps share, in percent."""
    changes = (mean.change for each in found for mean in each.spans.values())
    return max(_LEAST_LIMIT, *(100 * abs(change) for change in changes if change is not None), 0)


def _picture(found: StrategyAblation, limit: float) -> Picture:
    name = formatting.metric_name(found.metric)
    title = f"Change of {name} without adapters, {found.strategy}"
    with plots.picture(title, 4, 4) as plot:  # the heatmap knows its size
        scale: dict[str, Any] = {"limit": limit, "label": "Change, percent"}
        rows, low_is_bad = heatmap_rows(found), found.low_is_bad
        plots.heatmap(plot, rows, "last", "first", "change", **scale, low_is_bad=low_is_bad)
        x, y = (f"{which} layer without adapters" for which in ("Last", "First"))
        label_axes(plot.axes, x=x, y=y, grid="")
        if found.prefix:
            add_heading(plot.axes, found.strategy)
    seeds = f", mean over {found.seeds} seeds" if found.seeds > 1 else ""
    return Picture(
        plot.svg,
        f"Change of {name} on {found.split}, in percent of the score with all adapters, when "
        f"those of a span of layers are removed{seeds}. On the diagonal one layer, in the upper "
        "right corner all.",
    )


# Tables


def _tables(found: StrategyAblation) -> list[Table]:
    singles, longer = found.singles[:_SINGLES], found.worst_by_length()
    tables = [_table(f"{found.prefix}Single layers that cost most", found, singles)]
    if longer:
        title = f"{found.prefix}The span of each length that costs most"
        tables.append(_table(title, found, longer))
    return tables


def _table(title: str, found: StrategyAblation, spans: Sequence[Span]) -> Table:
    """The score with all adapters, then without those of each span."""
    label = formatting.metric_label(found.metric)
    columns = (Column("Without adapters of", numeric=False), Column(label), Column("Change"))
    intact = number(found.intact, formatting.score(found.metric, found.intact))
    rows = [Row((word("none"), intact, number(None, formatting.MISSING)))]
    rows += [Row((word(_layers(span)), *_cells(found, found.spans[span]))) for span in spans]
    over = f"Means over {found.seeds} seeds; ± is one standard deviation."
    return Table(title, columns, tuple(rows), (over,) if found.seeds > 1 else ())


def _cells(found: StrategyAblation, mean: SpanMean) -> tuple[Cell, Cell]:
    spread = "" if mean.spread is None else f"± {100 * mean.spread:.1f}"
    score = number(mean.score, formatting.score(found.metric, mean.score))
    return score, number(mean.change, percent(mean.change), spread)
