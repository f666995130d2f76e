"""From a study's records and advice to its report as plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from totune.advice import Advice, Ensemble
from totune.metrics import METRICS
from totune.outputs import MADE_BY
from totune.report import formatting
from totune.report.answer import answer, glance_table, glossary
from totune.report.axes import Point
from totune.report.comparison import comparison_table, ensemble_table, ensemble_words
from totune.report.document import Document, Picture, Section
from totune.report.figures import (
    cost_rows,
    curve_limits,
    curve_rows,
    draw_costs,
    draw_curves,
    draw_scores,
    rows_by_strategy,
    score_rows,
    strategy_colors,
)
from totune.report.groups import unit_of
from totune.report.phases import align_phases, draw_phases, gap_limit, phase_rows, phase_table
from totune.report.plots import Rows
from totune.report.table import fact_table
from totune.report.tables import cost_table, run_table, type_table, welch_table
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.repetitions import runs_of

_MOST_NAMED = 50  # classes, among the facts about the data


def study_document(
    info: StudyInfo,
    records: Sequence[RunRecord],
    advice: Advice,
    extra: Sequence[Section] = (),
    ensembles: Sequence[Ensemble] = (),
    model: Sequence[Section] = (),
) -> Document:
    """The report of a study, in the order a practitioner reads.

    Args:
        info: what was compared.
        records: every run, failed ones too; of a cross-validation every repetition.
        advice: what follows from them.
        extra: sections of searches and analyses; they come after the tests, before the data.
        ensembles: what its runs score together.
        model: sections on the recommended model; they come after scores and costs.
    """
    runs = runs_of(records)
    sections = (
        Section("At a glance", tables=(glance_table(info, records, advice),)),
        _scores(info, records, advice),
        *model,
        _types(info, records),
        _comparison(info, records, advice),
        _costs(info, records, advice),
        _ensembles(info, ensembles),
        _curves(info, runs),
        _phases(info, runs),
        _tests(info, records),
        *extra,
        _data(info),
        _setup(info),
        Section("Every run", tables=(run_table(info, runs),), folded=True),
        glossary(info),
    )
    first = answer(info, records, advice)
    return Document(info.name, _subtitle(info, runs), first, sections, _footer(info))


def _comparison(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Section:
    words = (advice.headline, *advice.reasons)
    table = comparison_table(info, records, advice)
    return Section("Comparison", words, tables=(table,), folded=True)


def _costs(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Section:
    words, table = (*advice.costs, *advice.effort), cost_table(info, records, advice)
    return Section("Costs", words, tables=(table,), folded=True)


def _subtitle(info: StudyInfo, records: Sequence[RunRecord]) -> str:
    model = str(info.model.get("name") or info.model.get("reference") or "")
    done, planned = len(records), max(len(info.runs), len(records))
    runs = f"{done} runs" if done == planned else f"{done} of {planned} runs so far"
    folds = f"{info.folds}-fold cross-validation" if info.folds > 1 else ""
    parts = (info.task, model, f"{len(info.strategies)} strategies", folds, runs)
    return " · ".join(part for part in parts if part)


def _footer(info: StudyInfo) -> str:
    day = info.created_at[:10]
    made = (MADE_BY, info.versions.get("totune", ""), f"on {day}" if day else "")
    return " ".join(part for part in made if part)


def _scores(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Section:
    standings, colors = advice.standings, strategy_colors(info, records)
    pictures = [
        Picture(draw_scores(rows, metric, colors), f"{formatting.metric_label(metric)} on test.")
        for metric in info.metrics
        if (rows := score_rows(info, records, metric, standings))
    ]
    if costs := cost_rows(info, records, standings):
        up = "Up" if METRICS[info.metric].higher_is_better else "Down"
        drawn = draw_costs(costs, info.metric, colors)
        pictures.append(Picture(drawn, f"{up} is better, left is cheaper."))
    point = "a run" if info.folds == 1 else f"a repetition of {info.folds} folds"
    words = (
        f"A point is {point}; below the points stand the mean and its 95% interval over seeds, and "
        "from five runs on the box holds the middle half with the median. A cross is a degenerate "
        "run; it counts like any other."
    )
    return Section("Scores and costs", (words,) if pictures else (), pictures=tuple(pictures))


def _types(info: StudyInfo, records: Sequence[RunRecord]) -> Section:
    table = type_table(info, records)
    return Section(table.title, tables=(table,) if table.rows else ())


def _ensembles(info: StudyInfo, ensembles: Sequence[Ensemble]) -> Section:
    if not ensembles:
        return Section("Ensembles")
    table = ensemble_table(info, ensembles)
    return Section("Ensembles", (ensemble_words(info),), tables=(table,), folded=True)


def _curves(info: StudyInfo, records: Sequence[RunRecord]) -> Section:
    rows = curve_rows(info, records)
    if not rows:
        return Section("Learning curves")
    limits, colors = curve_limits(rows), strategy_colors(info, records)
    pictures = tuple(
        Picture(
            draw_curves(own, info.metric, colors[own[0]["strategy"]], limits),
            _outside(own, limits),
            small=True,
        )
        for own in rows_by_strategy(rows)
    )
    words = (
        f"{formatting.metric_label(info.metric)} on dev after every epoch, a line per seed; the "
        "dot is the epoch that was kept. Dotted: on train, measured while it trained. Dashed: a "
        "degenerate run."
    )
    return Section("Learning curves", (words,), pictures=pictures, folded=True)


def _phases(info: StudyInfo, records: Sequence[RunRecord]) -> Section:
    table, colors = phase_table(info, records), strategy_colors(info, records)
    pictures = []
    for rows in rows_by_strategy(phase_rows(info, records)):
        strategy = rows[0]["strategy"]
        limit = gap_limit(records, strategy, info.metric)
        drawn = draw_phases(rows, info.metric, colors[strategy], limit=limit)
        pictures.append(Picture(drawn, _phase_caption(rows)))
    tables = (table,) if table.rows else ()
    return Section("Phases", tables=tables, pictures=tuple(pictures), folded=True)


def _phase_caption(rows: Rows) -> str:
    """Which gap is shown, and how the axis goes where seeds differ."""
    aligned = (
        "Seeds stay in a phase for different times; on the axis a phase begins where the longest "
        "before it ends."
    )
    placed: dict[int, list[int]] = {}
    for row in align_phases(rows)[0]:
        placed.setdefault(row["seed"], []).append(row["at"])
    uneven = any(places != placed[rows[0]["seed"]] for places in placed.values())
    has_gap = any(row["gap"] is not None for row in rows)
    gap = "Gap: how far train, dropout off, is ahead of dev." if has_gap else ""
    return " ".join(text for text in (gap, aligned if uneven else "") if text)


def _outside(rows: Rows, limits: Point) -> str:
    """Names degenerate runs that the scale leaves out."""
    low, high = limits
    shown = {row["seed"] for row in rows if row["dev"] is not None and low <= row["dev"] <= high}
    odd = dict.fromkeys(row["seed"] for row in rows if row["degenerate"])
    hidden = [str(seed) for seed in odd if seed not in shown]
    return f"Degenerate, outside this scale: seed {', '.join(hidden)}." if hidden else ""


def _tests(info: StudyInfo, records: Sequence[RunRecord]) -> Section:
    if info.folds > 1:  # repetitions share their rows, so they are no sample for Welch's test
        return Section("Tests")
    table = welch_table(info, records, info.metric)
    return Section("Tests", tables=(table,) if table.rows else (), folded=True)


def _data(info: StudyInfo) -> Section:
    """What the data is; what was noticed while reading it stands above."""
    apart = ("name", "task", "columns", "rows", "digest", "notes", "warnings", "cautions")
    beside_the_answer = ("class_counts",)
    facts = {
        "name": info.name,
        "task": info.task,
        "columns": _without(info.data.get("columns"), "task"),
        **{name: _first(value) for name, value in _without(info.data.get("task"), "name").items()},
        **_rows(info),
        **_without(info.data, *apart, *beside_the_answer),
        "digest": info.data.get("digest"),
    }
    return Section(
        "Data",
        paragraphs=tuple(info.data.get("notes") or ()),
        warnings=tuple(info.data.get("warnings") or ()),
        tables=(fact_table("Data", facts),),
    )


def _first(value: Any) -> Any:
    """The beginning of a long list, such as the names of ten thousand classes."""
    if not isinstance(value, list) or len(value) <= _MOST_NAMED:
        return value
    return [*value[:_MOST_NAMED], f"and {len(value) - _MOST_NAMED:,} more"]


def _rows(info: StudyInfo) -> dict[str, Any]:
    """How many rows the splits have, called by what a row is."""
    name = "sentences" if unit_of(info.metric) == "sentences" else "rows"
    return {name: info.data.get("rows")}


def _without(facts: Mapping[str, Any] | None, *names: str) -> dict[str, Any]:
    return {name: value for name, value in (facts or {}).items() if name not in names}


def _setup(info: StudyInfo) -> Section:
    """All that is needed to do it again."""
    settings = {"seeds": info.seeds, **info.settings}
    tables = (
        fact_table("Model", info.model),
        fact_table("Settings", settings),
        fact_table("Machine", {**info.machine, "versions": info.versions}),
    )
    return Section(
        "Setup",
        tables=tuple(table for table in tables if table.rows),
        code=info.command,
        folded=True,
    )
