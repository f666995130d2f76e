"""A forecast in words, as a table and a picture, and beside what came true."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from totune.analyses.base import Rows
from totune.analyses.blocks import describe_block
from totune.analyses.forecast_model import ALIKE, brier, family_of
from totune.metrics import METRICS
from totune.report import formatting, plots
from totune.report.axes import label_axes
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import RunRecord
from totune.text import counted

Facts = Mapping[str, Any]

NAMES = {
    "frozen": "frozen features",
    "top layers": "tuning a few top layers",
    "whole encoder": "tuning the whole encoder",
    "inserted modules": "adapters, LoRA and their like",
}
_MAJORITY = 0.5  # below it the leading family is likelier not to win


class ForecastOutcome(NamedTuple):
    """How a study's runs bear out a forecast.

    Attributes:
        best: for each family with usable runs, its best strategy and that one's mean test score.
        winner: family of the best strategy.
        lead: how much better it is than the next family, in the metric's scale.
        chances: probabilities of these families, scaled to sum to 1.
        brier: Brier score of these probabilities.
    """

    best: Mapping[str, tuple[str, float]]
    winner: str
    lead: float
    chances: Mapping[str, float]
    brier: float

    @property
    def uninformed(self) -> float:
        """The Brier score of equal probabilities."""
        return 1 - 1 / len(self.chances)


def forecast_outcome(
    rows: Rows, records: Sequence[RunRecord], metric: str
) -> ForecastOutcome | None:
    """The forecast compared with a study's runs; None where fewer than two families have some."""
    scores: dict[tuple[str, str], list[float]] = {}
    for record in records:
        family = family_of(record.config["strategy"]["name"])
        score = record.test.get(metric)
        usable = record.status == "finished"
        if family is not None and usable and score is not None and math.isfinite(score):
            scores.setdefault((family, record.strategy), []).append(score)
    sign = METRICS[metric].sign
    best: dict[str, tuple[str, float]] = {}
    for (name, strategy), found in scores.items():
        mean = fmean(found)
        if name not in best or sign * mean > sign * best[name][1]:
            best[name] = strategy, mean
    chances: dict[str, float] = {
        row["family"]: row["probability"] for row in rows if row["family"] in best
    }
    if len(chances) < 2:
        return None
    total = sum(chances.values())
    chances = {name: chance / total for name, chance in chances.items()}
    order = sorted(chances, key=lambda name: -sign * best[name][1])
    lead = abs(best[order[0]][1] - best[order[1]][1])
    return ForecastOutcome(best, order[0], lead, chances, brier(chances, order[0]))


def forecast_section(title: str, rows: Rows, facts: Facts, records: Sequence[RunRecord]) -> Section:
    """What is forecast and why; where there are runs, whether it came true."""
    outcome = forecast_outcome(rows, records, facts["metric"])
    paragraphs = [_headline(rows), *_reasons(facts)]
    if outcome is not None:
        paragraphs.insert(1, _verification(outcome, facts["metric"]))
    tables = [_table(rows, outcome, facts)]
    if "probe" in facts:
        tables.append(_signal_table(facts))
    picture = Picture(draw_forecast(rows), "Bars: chances, with 90% intervals; marks: the prior.")
    return Section(
        title, tuple(paragraphs), tables=tuple(tables), pictures=(picture,), code=facts["command"]
    )


def draw_forecast(rows: Rows) -> str:
    """A bar per family with its interval and, as a mark, what the prior alone says."""
    names = ("probability", "low", "high", "prior")
    drawn = [
        {"family": NAMES[row["family"]], **{name: 100 * row[name] for name in names}}
        for row in rows
    ]
    size = 5.2, 0.9 + 0.42 * len(rows)
    with plots.picture("Chances of each family of strategies", *size) as plot:
        ends = ("low", "high")
        plots.bars(plot.axes, drawn, "family", "probability", interval=ends, mark="prior")
        label_axes(plot.axes, x="Chance of winning, percent", xlim=(0, 100), grid="x")
    return plot.svg


def _headline(rows: Rows) -> str:
    first, second = sorted(rows, key=lambda row: -row["probability"])[:2]
    likeliest, next_one = (f"{NAMES[row['family']]} ({_percent(row)})" for row in (first, second))
    open_ended = first["probability"] < _MAJORITY
    caution = " No family is likelier to win than not to." if open_ended else ""
    return f"Likeliest to win: {likeliest}, then {next_one}.{caution}"


def _percent(row: Mapping[str, Any]) -> str:
    low, high = (f"{100 * row[name]:.0f}" for name in ("low", "high"))
    return f"{100 * row['probability']:.0f}%, between {low} and {high}"


def _reasons(facts: Facts) -> list[str]:
    reasons = [_prior_reason(facts), _rows_reason(facts)]
    if "probe" in facts:
        reasons[1:1] = [_headroom_reason(facts), _words_reason(facts)]
    if "divergence" in facts:
        reasons.append(
            f"The training texts diverge from the corpus by {facts['divergence']:.3f} bits. That "
            "is not weighed: Peters et al. 2019 find no significant correlation with what tuning "
            "gains."
        )
    return reasons


def _prior_reason(facts: Facts) -> str:
    """How often each family beat tuning the whole encoder, in results like this case."""
    case = f"a {facts['kind']} on {facts['shape']}"
    records = [
        f"{NAMES[family]} won {won:g} of {won + lost:g}"
        for family, (won, lost) in facts["wins"].items()
    ]
    return (
        f"The forecast rests on {counted(facts['results'], 'result')} with {case}: of comparisons "
        f"with tuning the whole encoder, {', '.join(records)} (a half where they were alike)."
    )


def _headroom_reason(facts: Facts) -> str:
    metric, rows = facts["metric"], f"{facts['probe_rows']:,} rows"
    share = f"{100 * facts['headroom']:.0f}%"
    score = formatting.score(metric, facts["probe"])
    where = describe_block(facts["block"], facts["depth"])
    more = (
        "the more is left, the more tuning gains"
        if facts["kind"] == "transformer"
        else "that is not weighed, since with language models frozen features won whatever was left"
    )
    return (
        f"The best linear probe, on {where} and {rows}, has {formatting.metric_name(metric)} "
        f"{score} on dev and leaves {share} of the errors of a constant answer; {more}."
    )


def _words_reason(facts: Facts) -> str:
    metric = facts["metric"]
    sign = METRICS[metric].sign
    words = formatting.score(metric, facts["tf_idf"])
    control = formatting.score(metric, facts["control"])
    baseline = f"tf-idf has {words} on the same rows"
    if not facts["selective"]:
        return (
            f"{baseline}. The probe cannot be distinguished from chance: with permuted labels "
            f"the best of all blocks has {control}."
        )
    better = sign * (facts["probe"] - facts["tf_idf"]) > 0
    return (
        f"{baseline}, so the encoder's frozen features tell {'more' if better else 'no more'} than "
        f"words; with permuted labels the best of all blocks has {control}."
    )


def _rows_reason(facts: Facts) -> str:
    each = f", {facts['rows'] / facts['classes']:,.0f} per class" if facts["classes"] else ""
    count = f"There are {facts['rows']:,} training rows{each}"
    if facts["rows"] >= facts["fewest_rows"]:
        return f"{count}, no fewer than in the smallest of all results ({facts['fewest_rows']:,})."
    return (
        f"{count}, fewer than in the smallest of all results ({facts['fewest_rows']:,}): the "
        "forecast is drawn towards equal chances and, below 1,000, to frozen features."
    )


def _verification(outcome: ForecastOutcome, metric: str) -> str:
    likely = max(outcome.chances, key=lambda family: outcome.chances[family])
    strategy, score = outcome.best[outcome.winner]
    points = formatting.is_bounded(metric)
    lead = f"{formatting.score(metric, outcome.lead)}{' points' if points else ''}"
    alike = points and 100 * outcome.lead <= ALIKE
    near = " (so near that the results it rests on would count as alike)" if alike else ""
    hit = "and it won" if likely == outcome.winner else f"but {NAMES[outcome.winner]} won"
    return (
        f"Of the families with usable runs the likeliest was {NAMES[likely]}, {hit}: {strategy} "
        f"has {formatting.score(metric, score)} on test, {lead} ahead of the next family{near}. "
        f"The Brier score is {outcome.brier:.2f}; equal chances would have "
        f"{outcome.uninformed:.2f}."
    )


def _table(rows: Rows, outcome: ForecastOutcome | None, facts: Facts) -> Table:
    names = ("Family", "Chance of winning", "90% interval", "Prior", "Tried by", "Time per run")
    columns = [Column(name, name not in ("Family", "Tried by")) for name in names]
    if outcome is not None:
        columns += [Column("Best strategy", numeric=False), Column("Test score")]
    lines = []
    for row in rows:
        cells = [
            word(NAMES[row["family"]]),
            number(row["probability"], f"{100 * row['probability']:.0f}%"),
            Cell([row["low"], row["high"]], f"{100 * row['low']:.0f}% to {100 * row['high']:.0f}%"),
            number(row["prior"], f"{100 * row['prior']:.0f}%"),
            word(row["strategy"]),
            number(row["seconds"], formatting.duration(row["seconds"])),
        ]
        mark = "likeliest" if row["family"] == facts["leading"] else ""
        if outcome is not None:
            strategy, score = outcome.best.get(row["family"], ("", math.nan))
            cells += [word(strategy), number(score, formatting.score(facts["metric"], score))]
            mark = ", ".join(filter(None, (mark, "won" * (row["family"] == outcome.winner))))
        lines.append(Row(tuple(cells), mark))
    note = (
        "Times are counted in forward passes of the frozen encoder, of which one was measured, "
        "with default epochs: rough, and without what a head takes."
    )
    return Table("Chances", tuple(columns), tuple(lines), (note,))


def _signal_table(facts: Facts) -> Table:
    metric = facts["metric"]
    named = {
        "Constant answer": "floor",
        "tf-idf": "tf_idf",
        "Best linear probe": "probe",
        "Best of permuted labels": "control",
    }
    columns = (Column("", numeric=False), Column(f"Dev {formatting.metric_name(metric)}"))
    rows = tuple(
        Row((word(name), number(facts[key], formatting.score(metric, facts[key]))))
        for name, key in named.items()
    )
    note = (
        f"Trained on {facts['probe_rows']:,} rows, scored on {facts['dev_rows']:,} of dev. The "
        "probe is the best of all blocks, and chosen by this score."
    )
    return Table("Signals", columns, rows, (note,))
