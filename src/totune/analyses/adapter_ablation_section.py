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
    ablations = summaries(result)
    known = [ablation for ablation in ablations if ablation.is_known]
    limit = _limit(ablations)
    pictures = tuple(_picture(ablation, limit) for ablation in known)
    tables = tuple(table for ablation in ablations for table in _tables(ablation))
    finding = " ".join(map(_finding, ablations))
    halves = " ".join(_halves(ablation) for ablation in known if len(ablation.layers) > 1)
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


def _finding(ablation: StrategyAblation) -> str:
    """Which layers matter, beside what Mohebbi and Rajaee saw."""
    name = formatting.metric_name(ablation.metric)
    if not ablation.is_known:
        score = formatting.score(ablation.metric, ablation.intact)
        return (
            f"{ablation.prefix}With all adapters {name} is {score}: of that there is no relative "
            "change."
        )
    verb = "lowers" if ablation.low_is_bad else "raises"
    everything = ablation.cost(ablation.whole)
    if not everything > 0:
        change = percent(ablation.spans[ablation.whole].change)
        return (
            f"{ablation.prefix}Removing all adapters does {name} on {ablation.split} no harm "
            f"({change}): taken together they do not help there."
        )
    whole = f"{100 * everything:.1f}%"
    if len(ablation.layers) == 1:
        return (
            f"{ablation.prefix}Removing the adapters, which all layers share, {verb} {name} by "
            f"{whole}."
        )
    return ablation.prefix + _compared(ablation, f"{verb} {name}", whole)


def _compared(ablation: StrategyAblation, verb: str, whole: str) -> str:
    worst = ablation.singles[0]
    cost, layer = ablation.cost(worst), _layers(worst)
    if cost <= SMALL * ablation.cost(ablation.whole):
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


def _halves(ablation: StrategyAblation) -> str:
    """What the lower and the upper layers' adapters are worth."""
    middle = len(ablation.layers) // 2
    below = ablation.layers[0][0], ablation.layers[middle - 1][1]
    above = ablation.layers[middle][0], ablation.layers[-1][1]
    whose = f" of {ablation.strategy}" if ablation.prefix else ""
    lower, upper = (percent(ablation.spans[half].change) for half in (below, above))
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


def heatmap_rows(ablation: StrategyAblation) -> list[dict[str, Any]]:
    """A row per first and last layer, by name; `change` in percent, None below the diagonal."""
    changes = {span: mean.change for span, mean in ablation.spans.items()}
    return [
        {
            "first": layer_name(first),
            "last": layer_name(last),
            "change": None if change is None else 100 * change,
        }
        for first in ablation.layers
        for last in ablation.layers
        for change in [changes.get((first[0], last[1]))]
    ]


def _limit(ablations: Sequence[StrategyAblation]) -> float:
    """The end of the scale that all heatmaps share, in percent."""
    changes = (mean.change for ablation in ablations for mean in ablation.spans.values())
    return max(_LEAST_LIMIT, *(100 * abs(change) for change in changes if change is not None), 0)


def _picture(ablation: StrategyAblation, limit: float) -> Picture:
    name = formatting.metric_name(ablation.metric)
    title = f"Change of {name} without adapters, {ablation.strategy}"
    with plots.picture(title, 4, 4) as plot:  # the heatmap knows its size
        scale: dict[str, Any] = {"limit": limit, "label": "Change, percent"}
        rows, low_is_bad = heatmap_rows(ablation), ablation.low_is_bad
        plots.heatmap(plot, rows, "last", "first", "change", **scale, low_is_bad=low_is_bad)
        x, y = (f"{which} layer without adapters" for which in ("Last", "First"))
        label_axes(plot.axes, x=x, y=y, grid="")
        if ablation.prefix:
            add_heading(plot.axes, ablation.strategy)
    seeds = f", mean over {ablation.seeds} seeds" if ablation.seeds > 1 else ""
    return Picture(
        plot.svg,
        f"Change of {name} on {ablation.split}, in percent of the score with all adapters, when "
        f"those of a span of layers are removed{seeds}. On the diagonal one layer, in the upper "
        "right corner all.",
    )


# Tables


def _tables(ablation: StrategyAblation) -> list[Table]:
    singles, longer = ablation.singles[:_SINGLES], ablation.worst_by_length()
    tables = [_table(f"{ablation.prefix}Single layers that cost most", ablation, singles)]
    if longer:
        title = f"{ablation.prefix}The span of each length that costs most"
        tables.append(_table(title, ablation, longer))
    return tables


def _table(title: str, ablation: StrategyAblation, spans: Sequence[Span]) -> Table:
    """The score with all adapters, then without those of each span."""
    label = formatting.metric_label(ablation.metric)
    columns = (Column("Without adapters of", numeric=False), Column(label), Column("Change"))
    intact = number(ablation.intact, formatting.score(ablation.metric, ablation.intact))
    rows = [Row((word("none"), intact, number(None, formatting.MISSING)))]
    rows += [Row((word(_layers(span)), *_cells(ablation, ablation.spans[span]))) for span in spans]
    over = f"Means over {ablation.seeds} seeds; ± is one standard deviation."
    return Table(title, columns, tuple(rows), (over,) if ablation.seeds > 1 else ())


def _cells(ablation: StrategyAblation, mean: SpanMean) -> tuple[Cell, Cell]:
    spread = "" if mean.spread is None else f"± {100 * mean.spread:.1f}"
    score = number(mean.score, formatting.score(ablation.metric, mean.score))
    return score, number(mean.change, percent(mean.change), spread)
