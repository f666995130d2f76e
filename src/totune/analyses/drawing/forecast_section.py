"""A forecast in words, as a table and a picture, and beside what came true."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import matplotlib as mpl

from totune.analyses.measuring.blocks import told_block
from totune.analyses.measuring.evidence import ALIKE, family_of
from totune.analyses.measuring.forecasting import brier
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.canvas import STYLE, as_svg, sheet
from totune.report.document import Picture, Section
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import RunRecord
from totune.text import counted

Rows = Sequence[Mapping[str, Any]]
Facts = Mapping[str, Any]

TOLD = {
    "frozen": "frozen features",
    "top layers": "tuning a few top layers",
    "whole encoder": "tuning the whole encoder",
    "inserted modules": "adapters, LoRA and their like",
}
_LEANING = 0.5  # below it the leading family is likelier not to win


@dataclass(frozen=True)
class Outcome:
    """What a study says of a forecast.

    Attributes:
        best: of each family with usable runs, its best strategy and that one's mean test score.
        winner: the family of the best strategy.
        lead: how much better it is than the next family, in the metric's scale.
        chances: of these families, scaled to sum to 1.
        brier: of these chances.
    """

    best: Mapping[str, tuple[str, float]]
    winner: str
    lead: float
    chances: Mapping[str, float]
    brier: float

    @property
    def ignorant(self) -> float:
        """The Brier score of equal chances."""
        return 1 - 1 / len(self.chances)


def outcome(rows: Rows, records: Sequence[RunRecord], metric: str) -> Outcome | None:
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
    return Outcome(best, order[0], lead, chances, brier(chances, order[0]))


def forecast_section(title: str, rows: Rows, facts: Facts, records: Sequence[RunRecord]) -> Section:
    """What is forecast and why; where there are runs, whether it came true."""
    found = outcome(rows, records, facts["metric"])
    paragraphs = [_headline(rows), *_reasons(facts)]
    if found is not None:
        paragraphs.insert(1, _came_true(found, facts["metric"]))
    tables = [_table(rows, found, facts)]
    if "probe" in facts:
        tables.append(_signal_table(facts))
    picture = Picture(draw_forecast(rows), "Bars: chances, with 90% intervals; marks: the prior.")
    return Section(
        title, tuple(paragraphs), tables=tuple(tables), pictures=(picture,), code=facts["command"]
    )


def draw_forecast(rows: Rows) -> str:
    """A bar per family with its interval and, as a mark, what the prior alone says."""
    with mpl.rc_context(STYLE):
        canvas, axes = sheet(5.2, 0.9 + 0.42 * len(rows))
        places = range(len(rows) - 1, -1, -1)
        for place, row in zip(places, rows, strict=True):
            axes.barh(place, 100 * row["probability"], height=0.55, color="#0072B2", alpha=0.75)
            ends = [100 * row["low"], 100 * row["high"]]
            axes.plot(ends, [place] * 2, color="#26303a", lw=1.2)
            axes.plot([100 * row["prior"]] * 2, [place - 0.36, place + 0.36], color="#D55E00", lw=2)
        axes.set_yticks(list(places), [TOLD[row["family"]] for row in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 100)
        axes.set_xlabel("Chance of winning, percent")
        axes.grid(axis="x")
        return as_svg(canvas, "Chances of each family of strategies")


def _headline(rows: Rows) -> str:
    first, second = sorted(rows, key=lambda row: -row["probability"])[:2]
    told, after = (f"{TOLD[row['family']]} ({_percent(row)})" for row in (first, second))
    open_ended = first["probability"] < _LEANING
    caution = " No family is likelier to win than not to." if open_ended else ""
    return f"Likeliest to win: {told}, then {after}.{caution}"


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
    told = [
        f"{TOLD[family]} won {won:g} of {won + lost:g}"
        for family, (won, lost) in facts["wins"].items()
    ]
    return (
        f"The forecast rests on {counted(facts['results'], 'result')} with {case}: of comparisons "
        f"with tuning the whole encoder, {', '.join(told)} (a half where they were alike)."
    )


def _headroom_reason(facts: Facts) -> str:
    metric, rows = facts["metric"], f"{facts['probe_rows']:,} rows"
    share = f"{100 * facts['headroom']:.0f}%"
    score = formatting.score(metric, facts["probe"])
    where = told_block(facts["block"], facts["depth"])
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
    told = f"tf-idf has {words} on the same rows"
    if not facts["selective"]:
        return (
            f"{told}. The probe cannot be told from chance: with permuted labels the best of all "
            f"blocks has {control}."
        )
    better = sign * (facts["probe"] - facts["tf_idf"]) > 0
    return (
        f"{told}, so the encoder's frozen features tell {'more' if better else 'no more'} than "
        f"words; with permuted labels the best of all blocks has {control}."
    )


def _rows_reason(facts: Facts) -> str:
    each = f", {facts['rows'] / facts['classes']:,.0f} per class" if facts["classes"] else ""
    told = f"There are {facts['rows']:,} training rows{each}"
    if facts["rows"] >= facts["fewest_rows"]:
        return f"{told}, no fewer than in the smallest of all results ({facts['fewest_rows']:,})."
    return (
        f"{told}, fewer than in the smallest of all results ({facts['fewest_rows']:,}): the "
        "forecast is drawn to evenness and, below 1,000, to frozen features."
    )


def _came_true(found: Outcome, metric: str) -> str:
    likely = max(found.chances, key=lambda family: found.chances[family])
    strategy, score = found.best[found.winner]
    points = formatting.is_bounded(metric)
    lead = f"{formatting.score(metric, found.lead)}{' points' if points else ''}"
    alike = points and 100 * found.lead <= ALIKE
    near = " (so near that the results it rests on would count as alike)" if alike else ""
    hit = "and it won" if likely == found.winner else f"but {TOLD[found.winner]} won"
    return (
        f"Of the families with usable runs the likeliest was {TOLD[likely]}, {hit}: {strategy} "
        f"has {formatting.score(metric, score)} on test, {lead} ahead of the next family{near}. "
        f"The Brier score is {found.brier:.2f}; equal chances would have {found.ignorant:.2f}."
    )


def _table(rows: Rows, found: Outcome | None, facts: Facts) -> Table:
    names = ("Family", "Chance of winning", "90% interval", "Prior", "Tried by", "Time per run")
    columns = [Column(name, name not in ("Family", "Tried by")) for name in names]
    if found is not None:
        columns += [Column("Best strategy", numeric=False), Column("Test score")]
    lines = []
    for row in rows:
        cells = [
            word(TOLD[row["family"]]),
            number(row["probability"], f"{100 * row['probability']:.0f}%"),
            Cell([row["low"], row["high"]], f"{100 * row['low']:.0f}% to {100 * row['high']:.0f}%"),
            number(row["prior"], f"{100 * row['prior']:.0f}%"),
            word(row["strategy"]),
            number(row["seconds"], formatting.duration(row["seconds"])),
        ]
        mark = "likeliest" if row["family"] == facts["leading"] else ""
        if found is not None:
            strategy, score = found.best.get(row["family"], ("", math.nan))
            cells += [word(strategy), number(score, formatting.score(facts["metric"], score))]
            mark = ", ".join(filter(None, (mark, "won" * (row["family"] == found.winner))))
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
