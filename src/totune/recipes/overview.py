"""A recipe's table across data sets: ours beside the paper's, mean, rank and differences."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from totune.recipes.recipe import DifferenceRow, Recipe
from totune.recipes.results import Outcome, Results
from totune.report import formatting
from totune.report.document import Section
from totune.report.table import Cell, Column, Row, Table, number, word

Cells = Mapping[tuple[str, str], Outcome]  # by label and data set


def overview(recipe: Recipe, results: Results) -> Section:
    """The section: the table, and why cells of it are empty."""
    cells = {(each.label, group.data): each for group in results.groups for each in group.outcomes}
    reasons: dict[str, list[str]] = {}
    for (label, data), outcome in cells.items():
        if outcome.absent:
            reasons.setdefault(f"{recipe.title_of(data)}: {outcome.absent}", []).append(label)
    every = len({label for label, _ in cells})
    warnings = tuple(
        f"Not run: {reason}" if len(labels) == every else f"{', '.join(labels)} not run: {reason}"
        for reason, labels in reasons.items()
    )
    title = "All data sets" if len(recipe.data) > 1 else "Rows and differences"
    return Section(title, warnings=warnings, tables=(overview_table(recipe, cells, title),))


def overview_table(recipe: Recipe, cells: Cells, title: str = "All data sets") -> Table:
    """A row per candidate and per difference, a column per data set, mean and mean rank."""
    data = list(recipe.data)
    means = {key: _mean(recipe, outcome, key[1]) for key, outcome in cells.items()}
    ran = [r.label for r in recipe.rows if any(means.get((r.label, d)) is not None for d in data)]
    whole = [d for d in data if ran and all(means.get((r, d)) is not None for r in ran)]
    ranks = {name: _ranks(ran, means, name) for name in whole}
    rows = []
    for row in recipe.rows:
        shown = [_cell(recipe, cells.get((row.label, name)), name) for name in data]
        own = [means.get((row.label, name)) for name in whole]
        paper = [_paper(recipe, cells.get((row.label, name)), name) for name in whole]
        place = None
        if whole and row.label in ran:
            place = fmean(ranks[name][row.label] for name in whole)
        rank = Cell(place, formatting.MISSING if place is None else f"{place:.1f}")
        rows.append(Row((word(row.label), *shown, _mean_cell(own, paper), rank)))
    for difference in recipe.differences:
        shown = [_difference(recipe, cells, difference, name) for name in data]
        blank = Cell(None, formatting.MISSING)
        rows.append(Row((word(difference.label), *shown, blank, blank)))
    titles = [
        f"{recipe.title_of(name)} ({formatting.metric_label(recipe.metrics_of(name)[0])})"
        for name in data
    ]
    columns = (Column("Row", numeric=False), *map(Column, (*titles, "Mean", "Mean rank")))
    told = ", ".join(map(recipe.title_of, whole)) or "none"
    notes = (
        "Ours: mean ± standard deviation over seeds; with it the paper's figure.",
        f"Mean and mean rank are of the data sets on which every row ran that ran at all ({told}).",
    )
    return Table(title, columns, tuple(rows), notes)


def _mean(recipe: Recipe, outcome: Outcome, data: str) -> float | None:
    found = outcome.summary(recipe.metrics_of(data)[0])
    return None if found is None else found.mean


def _paper(recipe: Recipe, outcome: Outcome | None, data: str) -> float | None:
    return None if outcome is None else outcome.paper.get(recipe.metrics_of(data)[0])


def _ranks(
    labels: Sequence[str], means: Mapping[tuple[str, str], float | None], data: str
) -> dict[str, float]:
    """The rank of every row on one data set, 1 being best; equals share theirs."""
    scores = {label: means[label, data] or 0.0 for label in labels}
    return {
        label: 1
        + sum(other > own for other in scores.values())
        + (sum(other == own for other in scores.values()) - 1) / 2
        for label, own in scores.items()
    }


def _cell(recipe: Recipe, outcome: Outcome | None, data: str) -> Cell:
    paper = _paper(recipe, outcome, data)
    beside = "" if paper is None else f"paper {three(paper)}"
    if outcome is None:
        return Cell(None, formatting.MISSING)
    found = outcome.summary(recipe.metrics_of(data)[0])
    if found is None:
        reason = outcome.absent.partition(":")[0] if "absent" in outcome.absent else "failed"
        return Cell(None, f"not run: {reason}" if outcome.absent else formatting.MISSING, beside)
    spread = f" ± {three(found.std)}" if found.n > 1 else ""
    return Cell(found.mean, f"{three(found.mean)}{spread}", beside)


def _mean_cell(own: Sequence[float | None], paper: Sequence[float | None]) -> Cell:
    known = [value for value in own if value is not None]
    if not known:
        return Cell(None, formatting.MISSING)
    told = [value for value in paper if value is not None]
    beside = f"paper {three(fmean(told))}" if told and len(told) == len(known) else ""
    return number(fmean(known), three(fmean(known)), beside)


def _difference(recipe: Recipe, cells: Cells, difference: DifferenceRow, data: str) -> Cell:
    pair = [cells.get((label, data)) for label in (difference.first, difference.second)]
    ours = [None if each is None else _mean(recipe, each, data) for each in pair]
    first, second = (_paper(recipe, each, data) for each in pair)
    told = difference.paper.get(data, {}).get(recipe.metrics_of(data)[0])
    if told is None and first is not None and second is not None:
        told = first - second
    beside = "" if told is None else f"paper {signed(told)}"
    if ours[0] is None or ours[1] is None:
        return Cell(None, formatting.MISSING, beside)
    return Cell(ours[0] - ours[1], signed(ours[0] - ours[1]), beside)


def three(value: float | None) -> str:
    """Three decimals, as the papers print their scores; counts in full."""
    if value is None:
        return formatting.MISSING
    shown = f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3f}"
    return shown.replace("-", "−")


def signed(value: float | None) -> str:
    """A difference with its sign, likewise."""
    if value is None:
        return formatting.MISSING
    if value == 0:
        return "0"
    shown = f"{value:+,.0f}" if abs(value) >= 1_000 else f"{value:+.3f}"
    return shown.replace("-", "−")
