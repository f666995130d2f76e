"""What removing adapters span by span has shown: a sentence, tables and heatmaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from totune.adapters.sharing import Span
from totune.analyses.base import Values
from totune.analyses.drawing.degenerate import degenerate_warning
from totune.analyses.drawing.span_heatmap import SpanHeatmap, draw_spans, layer_name, span_cells
from totune.analyses.measuring.known import mean
from totune.analyses.measuring.span_walk import spans_of
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import RunRecord

SMALL = 0.1  # up to this share of what removing all adapters costs, one layer's matter little
_SINGLES = 5  # single layers in the table
_LEAST_LIMIT = 0.1  # percent, so that a heatmap of zeros has a scale


@dataclass(frozen=True)
class Mean:
    """Over seeds; None where no seed has a value.

    Attributes:
        spread: standard deviation of `change`; None for fewer than two seeds.
    """

    score: float | None
    change: float | None
    spread: float | None


@dataclass(frozen=True)
class Ablated:
    """One strategy's models.

    Attributes:
        several: whether other strategies stand beside it.
        layers: whose adapters can be removed alone.
        intact: the score with all adapters, mean over seeds.
        spans: what is left without each span, worst first.
    """

    strategy: str
    several: bool
    seeds: int
    metric: str
    split: str
    layers: tuple[Span, ...]
    intact: float | None
    spans: Mapping[Span, Mean]

    @property
    def whole(self) -> Span:
        return self.layers[0][0], self.layers[-1][1]

    @property
    def harm_is_low(self) -> bool:
        return METRICS[self.metric].higher_is_better

    @property
    def singles(self) -> list[Span]:
        """Single layers, the one that costs most first."""
        return [span for span in self.spans if span in self.layers]

    def cost(self, span: Span) -> float:
        """The relative change for the worse; not a number where it is not known."""
        change = self.spans[span].change
        if change is None:
            return float("nan")
        return -change if self.harm_is_low else change

    def worst_by_length(self) -> list[Span]:
        """Of the spans of two layers, of three, ... the one that costs most."""
        found: dict[int, Span] = {}
        starts = [first for first, _ in self.layers]
        ends = [last for _, last in self.layers]
        for first, last in self.spans:
            found.setdefault(ends.index(last) - starts.index(first) + 1, (first, last))
        return [found[length] for length in sorted(found) if length > 1]


def ablation_section(title: str, values: Values, records: Sequence[RunRecord] = ()) -> Section:
    """The finding in words, a heatmap per strategy, the worst layers and spans."""
    found = summaries(values)
    limit = _limit(found)
    pictures = tuple(_picture(each, limit) for each in found if _is_known(each))
    tables = tuple(table for each in found for table in _tables(each))
    finding = " ".join(_finding(each) for each in found)
    halves = " ".join(_halves(each) for each in found if len(each.layers) > 1 and _is_known(each))
    told = (finding, halves, _method(values.facts))
    odd = degenerate_warning(((row["strategy"], row["seed"]) for row in values.rows), records)
    return Section(title, tuple(text for text in told if text), odd, tables, pictures)


def summaries(values: Values) -> list[Ablated]:
    """Means over seeds, a strategy each, as the rows come."""
    strategies = list(dict.fromkeys(row["strategy"] for row in values.rows))
    return [_ablated(name, len(strategies) > 1, values) for name in strategies]


def _ablated(strategy: str, several: bool, values: Values) -> Ablated:
    rows = [row for row in values.rows if row["strategy"] == strategy]
    facts = values.facts
    layers = tuple((int(first), int(last)) for first, last in facts["layers"])
    means = {span: _mean(rows, span) for span in spans_of(layers)}
    lower_is_worse = METRICS[facts["metric"]].higher_is_better

    def order(span: Span) -> tuple[float, Span]:
        change = means[span].change or 0.0
        return (change if lower_is_worse else -change), span

    return Ablated(
        strategy=strategy,
        several=several,
        seeds=len({row["seed"] for row in rows}),
        metric=facts["metric"],
        split=facts["split"],
        layers=layers,
        intact=mean([row["intact"] for row in rows]),
        spans={span: means[span] for span in sorted(means, key=order)},
    )


def _mean(rows: Sequence[Mapping[str, Any]], span: Span) -> Mean:
    own = [row for row in rows if (row["first"], row["last"]) == span]
    changes = [row["change"] for row in own if row["change"] is not None]
    spread = float(np.std(changes, ddof=1)) if len(changes) > 1 else None
    return Mean(mean([row["score"] for row in own]), mean(changes), spread)


def _is_known(found: Ablated) -> bool:
    return any(mean.change is not None for mean in found.spans.values())


def _finding(found: Ablated) -> str:
    """Which layers matter, beside what Mohebbi and Rajaee saw."""
    name = formatting.metric_name(found.metric)
    told = f"{found.strategy}: " if found.several else ""
    if not _is_known(found):
        score = formatting.score(found.metric, found.intact)
        return f"{told}With all adapters {name} is {score}: of that there is no relative change."
    verb = "lowers" if found.harm_is_low else "raises"
    everything = found.cost(found.whole)
    if not everything > 0:
        change = percent(found.spans[found.whole].change)
        return (
            f"{told}Removing all adapters does {name} on {found.split} no harm ({change}): taken "
            "together they do not help there."
        )
    whole = f"{100 * everything:.1f}%"
    if len(found.layers) == 1:
        return f"{told}Removing the adapters, which all layers share, {verb} {name} by {whole}."
    return told + _compared(found, f"{verb} {name}", whole)


def _compared(found: Ablated, verb: str, whole: str) -> str:
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


def _halves(found: Ablated) -> str:
    """What the lower and the upper layers' adapters are worth."""
    middle = len(found.layers) // 2
    below = found.layers[0][0], found.layers[middle - 1][1]
    above = found.layers[middle][0], found.layers[-1][1]
    told = f" of {found.strategy}" if found.several else ""
    changes = (percent(found.spans[half].change) for half in (below, above))
    lower, upper = changes
    return (
        f"Without the lower half{told} ({_layers(below)}) the score changes by {lower}, without "
        f"the upper half ({_layers(above)}) by {upper}."
    )


def _method(facts: Mapping[str, Any]) -> str:
    done, naive = facts["block_evaluations"], facts["naive_block_evaluations"]
    return (
        f"Scores are of {formatting.count(facts['rows'])} {facts['split']} rows; nothing was "
        f"trained again. What spans share was computed once: layers ran over batches "
        f"{formatting.count(done)} times, where running each span on its own takes "
        f"{formatting.count(naive)} ({formatting.significant(naive / done, 2)} times as many)."
    )


def _limit(found: Sequence[Ablated]) -> float:
    """The end of the scale that all heatmaps share, in percent."""
    changes = (mean.change for each in found for mean in each.spans.values())
    return max(_LEAST_LIMIT, *(100 * abs(change) for change in changes if change is not None), 0)


def _picture(found: Ablated, limit: float) -> Picture:
    name = formatting.metric_name(found.metric)
    changes = {span: mean.change for span, mean in found.spans.items()}
    cells = {span: None if change is None else 100 * change for span, change in changes.items()}
    figure = SpanHeatmap(
        title=f"Change of {name} without adapters, {found.strategy}",
        heading=found.strategy if found.several else "",
        label="Change, percent",
        layers=tuple(layer_name(span) for span in found.layers),
        cells=span_cells(found.layers, cells),
        limit=limit,
        harm_is_low=found.harm_is_low,
    )
    seeds = f", mean over {found.seeds} seeds" if found.seeds > 1 else ""
    return Picture(
        draw_spans(figure),
        f"Change of {name} on {found.split}, in percent of the score with all adapters, when "
        f"those of a span of layers are removed{seeds}. On the diagonal one layer, in the upper "
        "right corner all.",
    )


def _tables(found: Ablated) -> list[Table]:
    told = f"{found.strategy}: " if found.several else ""
    tables = [_table(f"{told}Single layers that cost most", found, found.singles[:_SINGLES])]
    longer = found.worst_by_length()
    if longer:
        tables.append(_table(f"{told}The span of each length that costs most", found, longer))
    return tables


def _table(title: str, found: Ablated, spans: Sequence[Span]) -> Table:
    """The score with all adapters, then without those of each span."""
    label = formatting.metric_label(found.metric)
    columns = (Column("Without adapters of", numeric=False), Column(label), Column("Change"))
    intact = number(found.intact, formatting.score(found.metric, found.intact))
    rows = [Row((word("none"), intact, number(None, formatting.MISSING)))]
    rows += [Row((word(_layers(span)), *_cells(found, found.spans[span]))) for span in spans]
    return Table(title, columns, tuple(rows), _notes(found))


def _cells(found: Ablated, mean: Mean) -> tuple[Cell, Cell]:
    spread = "" if mean.spread is None else f"± {100 * mean.spread:.1f}"
    score = number(mean.score, formatting.score(found.metric, mean.score))
    return score, number(mean.change, percent(mean.change), spread)


def _notes(found: Ablated) -> tuple[str, ...]:
    if found.seeds < 2:
        return ()
    return (f"Means over {found.seeds} seeds; ± is one standard deviation.",)


def _layers(span: Span) -> str:
    return f"layer{'s' if span[0] != span[1] else ''} {layer_name(span)}"


def percent(change: float | None) -> str:
    """A relative change as "−2.1%"; a zero has no sign."""
    if change is None:
        return formatting.MISSING
    text = f"{100 * change:+.1f}"
    return f"{abs(float(text)):.1f}%" if float(text) == 0 else f"{text}%".replace("-", "−")
