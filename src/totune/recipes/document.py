"""A recipe's results as a document: tables of ours beside the paper's, tests, box plots."""

import math
from collections.abc import Iterator, Mapping, Sequence

from totune.recipes.overview import overview, signed, three
from totune.recipes.recipe import Recipe
from totune.recipes.results import AVERAGES, Outcome, ProtocolGroup, Results, WelchTest
from totune.report import formatting
from totune.report.document import Answer, Document, Picture, Section
from totune.report.figures import draw_scores, score_rows, strategy_colors
from totune.report.table import Cell, Column, Row, Table, fact_table, word
from totune.runs.records import RunRecord, StudyInfo
from totune.text import counted

SIGNIFICANT = 0.05


def recipe_document(
    recipe: Recipe, results: Results, command: str = "", further: Sequence[Section] = ()
) -> Document:
    """The report of a recipe that was run.

    Args:
        recipe: what was run.
        results: what came out.
        command: the command line.
        further: sections of analyses.
    """
    sections = [overview(recipe, results)] if len(recipe.data) > 1 or recipe.differences else []
    sections += [_group_section(recipe, group) for group in results.groups]
    sections += further
    if results.tests:
        sections.append(Section("Welch t-tests", tables=(welch_table(results.tests),)))
    if averages := averages_table(results.groups[0]):
        sections.append(Section("What else is called F1", tables=(averages,)))
    sections.append(Section("What differs from the paper", paragraphs=recipe.notes))
    tables = tuple(fact_table(name.capitalize(), facts) for name, facts in results.facts.items())
    sections.append(Section("Setup", tables=tables, code=command))
    answer = Answer(
        headline(recipe, results),
        parts=(("Findings", findings(recipe, results)),),
        caveats=caveats(recipe, results),
    )
    return Document(recipe.title, recipe.paper, answer, tuple(sections))


def headline(recipe: Recipe, results: Results) -> str:
    """Whether the paper's figures, or its conclusions, came out again."""
    if recipe.tolerance:
        judged = list(_judged(recipe, results.groups[0]))
        near = sum(abs(difference) <= limit for _, _, difference, limit in judged)
        return f"{near} of {len(judged)} means lie within the tolerance of the paper's."
    told = [test for test in results.tests if test.paper is not None]
    if not told:
        every = [each for group in results.groups for each in group.outcomes]
        ran = sum(each.count > 0 for each in every)
        return (
            f"{ran} of {len(every)} cells of the table were run; the paper's figures beside them."
        )
    same = sum(
        test.ours is not None and _differs(test.ours) == _differs(test.paper) for test in told
    )
    return f"{same} of the paper's {len(told)} tests end as in the paper, at p < {SIGNIFICANT:.2f}."


def findings(recipe: Recipe, results: Results) -> tuple[str, ...]:
    """A sentence per figure that is held to a tolerance, per test, and per failed run."""
    told = [
        f"{row.label}, {formatting.metric_label(metric)}: {signed(difference)} against the "
        f"paper's {three(row.paper[metric])}, {'within' if near else 'OUTSIDE'} {three(limit)}."
        for row, metric, difference, limit in _judged(recipe, results.groups[0])
        for near in [abs(difference) <= limit]
    ]
    told += [_test_sentence(test) for test in results.tests]
    several = len(results.groups) > 1
    every = [(one.title, outcome) for one in results.groups for outcome in one.outcomes]
    for title, outcome in every:
        if outcome.failed or outcome.degenerate:
            where = f", {title}" if several else ""
            told.append(
                f"{outcome.label}{where}: {outcome.failed} runs failed, {outcome.degenerate} are "
                "degenerate (they count in the mean)."
            )
    return tuple(told)


def caveats(recipe: Recipe, results: Results) -> tuple[str, ...]:
    """What makes this run less than the recipe."""
    told = []
    if results.fraction < 1:
        told.append(
            f"A fraction of {results.fraction:.3g} was used: other figures than for all rows."
        )
    if results.seeds < recipe.run.seeds:
        fewer = f"{counted(results.seeds, 'seed')} instead of {recipe.run.seeds}"
        little = ": that a test finds no difference means little" if recipe.tests else ""
        told.append(f"{fewer}{little}.")
    return tuple(told)


def _judged(recipe: Recipe, group: ProtocolGroup) -> Iterator[tuple[Outcome, str, float, float]]:
    for outcome in group.outcomes:
        for metric, limit in recipe.tolerance.items():
            difference = outcome.difference(metric)
            if difference is not None:
                yield outcome, metric, difference, limit


def _differs(test: Mapping[str, float] | None) -> bool:
    return test is not None and test["p"] < SIGNIFICANT


def _test_sentence(test: WelchTest) -> str:
    pair = f"{test.first} against {test.second}, {formatting.metric_label(test.metric)}"
    if test.ours is None:
        return f"{pair}: no test, for fewer than two runs finished."
    paper = f", {_verdict(test.paper)} in the paper" if test.paper is not None else ""
    return f"{pair}: {_verdict(test.ours)} here{paper}."


def _verdict(test: Mapping[str, float]) -> str:
    kind = "a difference" if _differs(test) else "no significant difference"
    told = formatting.p_value(test["p"])
    return f"{kind} (p {told})" if told.startswith("<") else f"{kind} (p = {told})"


def _group_section(recipe: Recipe, group: ProtocolGroup) -> Section:
    drawn = _pictures(group.metrics or recipe.metrics, group)
    return Section(
        group.title,
        paragraphs=(group.about,),
        warnings=tuple(dict.fromkeys(f"Not run: {o.absent}" for o in group.outcomes if o.absent)),
        tables=(comparison_table(recipe, group),),
        pictures=tuple(drawn) if max(each.count for each in group.outcomes) > 1 else (),
    )


def comparison_table(recipe: Recipe, group: ProtocolGroup) -> Table:
    """Ours, the paper's and the difference, for every metric that the paper tells."""
    columns, metrics = [Column("Row", numeric=False)], group.metrics or recipe.metrics
    for metric in metrics:
        name = formatting.metric_label(metric)
        columns += [Column(f"{name}, ours"), Column(f"{name}, paper"), Column("Difference")]
    columns.append(Column("Values"))
    rows = tuple(_comparison_row(metrics, outcome) for outcome in group.outcomes)
    notes = ("Ours: mean ± standard deviation over the values.",)
    return Table(group.title, tuple(columns), rows, notes)


def _comparison_row(metrics: Sequence[str], outcome: Outcome) -> Row:
    cells = [word(outcome.label)]
    for metric in metrics:
        paper, difference = outcome.paper.get(metric), outcome.difference(metric)
        cells += [
            _mean_cell(outcome, metric),
            Cell(paper, three(paper)),
            Cell(difference, signed(difference)),
        ]
    return Row((*cells, Cell(outcome.count, str(outcome.count))))


def averages_table(group: ProtocolGroup) -> Table | None:
    """The other ways of averaging F1; None where the paper tells none, or none was computed."""
    told = any("f1" in outcome.paper for outcome in group.outcomes)
    computed = any(name in outcome.scores for outcome in group.outcomes for name in AVERAGES)
    if not (told and computed):
        return None
    columns = (
        Column("Row", numeric=False),
        Column("F1, paper"),
        Column("F1 of class 1"),
        *(Column(formatting.metric_label(name)) for name in AVERAGES),
    )
    rows = tuple(
        Row(
            (
                word(outcome.label),
                Cell(outcome.paper.get("f1"), three(outcome.paper.get("f1"))),
                *(_mean_cell(outcome, name) for name in ("f1", *AVERAGES)),
            )
        )
        for outcome in group.outcomes
    )
    return Table("F1 by class and by average", columns, rows)


def welch_table(tests: Sequence[WelchTest]) -> Table:
    """t, degrees of freedom and p of every test, ours and the paper's."""
    columns = [Column("Pair", numeric=False), Column("Metric", numeric=False)]
    for name in ("t", "df", "p"):
        columns += [Column(f"{name}, ours"), Column(f"{name}, paper")]
    rows = []
    for test in tests:
        cells = [
            word(f"{test.first} against {test.second}"),
            word(formatting.metric_label(test.metric)),
        ]
        for name in ("t", "df", "p"):
            for found in (test.ours, test.paper):
                value = None if found is None else found[name]
                cells.append(Cell(value, _statistic(name, value)))
        rows.append(Row(tuple(cells)))
    return Table("Welch t-tests", tuple(columns), tuple(rows))


def _statistic(name: str, value: float | None) -> str:
    return formatting.p_value(value) if name == "p" else formatting.significant(value)


def _pictures(metrics: Sequence[str], group: ProtocolGroup) -> Iterator[Picture]:
    """A box plot per metric, drawn as those of a study are."""
    info, records = as_study(metrics, group)
    colors = strategy_colors(info, records)
    for metric in metrics:
        if rows := score_rows(info, records, metric):
            drawn = draw_scores(rows, metric, colors)
            yield Picture(drawn, f"{formatting.metric_label(metric)}: {group.title}.")


def as_study(metrics: Sequence[str], group: ProtocolGroup) -> tuple[StudyInfo, list[RunRecord]]:
    """The group's values as a study's runs, numbered from 0, for what draws studies."""
    names = [outcome.label for outcome in group.outcomes]
    info = StudyInfo(group.title, "", {}, {}, metrics[0], list(metrics), names, [], {}, {}, {})
    records = []
    for outcome in group.outcomes:
        for number in range(outcome.count):
            values = {name: found[number] for name, found in outcome.scores.items()}
            run = RunRecord("", outcome.label, number, "finished", {}, {}, "", test=values)
            records.append(run)
    return info, records


def _mean_cell(outcome: Outcome, metric: str) -> Cell:
    found = outcome.summary(metric)
    if found is None:
        return Cell(None, formatting.MISSING)
    deviation = f" ± {three(found.std)}" if math.isfinite(found.std) else ""
    return Cell(found.mean, f"{three(found.mean)}{deviation}")
