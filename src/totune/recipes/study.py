"""Runs a recipe's studies, and collects their rows' scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.advice.ensembles import combine
from totune.api import compare
from totune.errors import RunError, TotuneError
from totune.progress import Progress
from totune.recipes.check import CheckedStudy
from totune.recipes.planned import PlannedStudy
from totune.recipes.recipe import Recipe, RecipeRow
from totune.recipes.results import Outcome, ProtocolGroup, Results, WelchTest, evaluate, run_test
from totune.runs.records import RunRecord
from totune.runs.store import Store
from totune.study.study import Study
from totune.tasks.base import Task, task_from_json

FOLDER, FOLDERS = "study", "studies"  # of the study, or of several, inside the report's folder
Scores = dict[str, float]


def run_studies(
    recipe: Recipe,
    checked: Sequence[CheckedStudy],
    out: Path,
    progress: Progress,
    keep_going: bool = False,
) -> tuple[Results, dict[str, Study]]:
    """Every row of the recipe over every seed; what `out` has finished already is not run again.

    Args:
        recipe: what to run.
        checked: its studies; rows with faults are left out, and say so.
        out: studies go to its folder `study`, or if there are several, to `studies`.
        progress: receives notes, warnings and progress.
        keep_going: whether a study that fails leaves the others running.

    Returns:
        The results, and the studies that ran, by the name of their folder.

    Raises:
        TotuneError: a study failed, unless `keep_going`; `RunError` if none ran.
    """
    found: dict[tuple[str, str], Outcome] = {}
    studies: dict[str, Study] = {}
    for one in checked:
        name = study_folder(recipe, one.study, len(checked))
        try:
            ran = _run(one, out / name, progress)
        except TotuneError as error:
            if not keep_going:
                raise
            progress.warn(f"{recipe.title_of(one.study.data)}: {error}")
            ran, reason = None, str(error)
        else:
            reason = one.study.lacking
        if ran is not None:
            studies[name] = ran
        for row in one.study.rows:
            fault = one.faults.get(row.label) or one.faults.get("") or reason
            found[row.label, one.study.data] = _outcome(row, one.study.data, ran, fault)
        for row in recipe.rows:
            if row.ensemble and ran is not None and row.runs_on(one.study.data):
                found[row.label, one.study.data] = _ensemble(row, one.study.data, ran)
    if not studies:  # a report of nothing would take the place of an earlier one
        reasons = dict.fromkeys(outcome.absent for outcome in found.values())
        raise RunError(f"Nothing of {recipe.name} ran. {' '.join(reasons)}")
    groups = tuple(_group(recipe, data, checked, found) for data in recipe.data)
    tests = tuple(_test(recipe, groups, number) for number in range(len(recipe.tests)))
    settings = checked[0].study.settings
    seeds = settings["seeds"] if isinstance(settings["seeds"], int) else len(settings["seeds"])
    results = Results(
        groups, tests, settings.get("fraction", 1.0), seeds, facts(recipe, checked, studies)
    )
    return results, studies


def study_folder(recipe: Recipe, study: PlannedStudy, count: int) -> str:
    """The folder of a study inside the report's."""
    if count == 1:
        return FOLDER
    encoder = f"-{study.encoder}" if len(recipe.encoders) > 1 else ""
    return f"{FOLDERS}/{study.data}{encoder}"


def _run(one: CheckedStudy, folder: Path, progress: Progress) -> Study | None:
    """The study; None where nothing of it can run."""
    study = one.study.without(list(one.faults))
    if study.lacking or "" in one.faults or not study.rows:
        return None
    assert study.source is not None
    return compare(study.source, out=folder, progress=progress, **{"folds": 1, **study.compared})


def _group(
    recipe: Recipe,
    data: str,
    checked: Sequence[CheckedStudy],
    found: dict[tuple[str, str], Outcome],
) -> ProtocolGroup:
    about = "One value per seed, on one test split."
    own = [one for one in checked if one.study.data == data]
    files = next((s for s in (one.study.source for one in own) if isinstance(s, dict)), {})
    if files.get("test") is not None and files.get("test") == files.get("dev"):
        about = "One value per seed, on the development set, which also chose among epochs."
    rows = next((one.train_rows for one in own if one.train_rows is not None), None)
    full = recipe.data[data].train_rows
    if rows is not None and full is not None and rows < full:
        about += f" {rows:,} of the full set's {full:,} train rows were used."
    outcomes = (
        found.get((row.label, data)) or Outcome(row.label, {}, row.paper.get(data, {}))
        for row in recipe.rows
        if row.runs_on(data)
    )
    several = len(recipe.data) > 1
    title = recipe.title_of(data) if several else "Test scores"
    return ProtocolGroup(title, about, tuple(outcomes), recipe.metrics_of(data), data)


def _test(recipe: Recipe, groups: Sequence[ProtocolGroup], number: int) -> WelchTest:
    test = recipe.tests[number]
    group = next(each for each in groups if not test.data or each.data == test.data)
    outcomes = {outcome.label: outcome for outcome in group.outcomes}
    paper = test.paper.model_dump() if test.paper else None
    return run_test(outcomes[test.first], outcomes[test.second], test.metric, paper)


def _outcome(row: RecipeRow, data: str, study: Study | None, fault: str) -> Outcome:
    """One row from its runs' predictions."""
    paper = row.paper.get(data, {})
    if study is None or fault:
        return Outcome(row.label, {}, paper, absent=fault or "nothing of it ran")
    runs = [record for record in study.records if record.strategy == row.label]
    finished = [record for record in runs if record.status == "finished"]
    predictions = _predictions(study, finished)
    scores = [evaluate(_task(study), *each) for each in predictions]
    return Outcome(
        row.label,
        _by_metric(scores),
        paper,
        failed=len(runs) - len(finished),
        degenerate=sum(record.degenerate is not None for record in finished),
    )


def _ensemble(row: RecipeRow, data: str, study: Study) -> Outcome:
    """The rows' runs of equal seeds, combined; seeds of which a run is missing do not count."""
    store, scores = Store(study.folder), []
    finished = [record for record in study.records if record.status == "finished"]
    for seed in study.info.seeds:
        found = {r.strategy: store.predictions(r) for r in finished if r.seed == seed}
        if all(label in found for label in row.ensemble):
            members = [found[label] for label in row.ensemble]
            scores.append(evaluate(_task(study), members[0]["targets"], combine(members)))
    absent = "" if scores else "a member of the ensemble has no finished run"
    return Outcome(row.label, _by_metric(scores), row.paper.get(data, {}), absent=absent)


def _by_metric(scores: Sequence[Scores]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(score[name] for score in scores) for name in (scores[0] if scores else ())}


def _predictions(
    study: Study, records: Sequence[RunRecord]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    arrays = [Store(study.folder).predictions(record) for record in records]
    return [(each["targets"], each["predictions"]) for each in arrays]


def _task(study: Study) -> Task:
    return task_from_json(study.info.data["task"])


def facts(
    recipe: Recipe, checked: Sequence[CheckedStudy], studies: dict[str, Study]
) -> dict[str, dict[str, Any]]:
    """What the studies were run on and with."""
    found: dict[str, dict[str, Any]] = {}
    if changed := {k: str(v) for k, v in checked[0].study.settings.get("options", {}).items()}:
        found["set in place of the recipe's options"] = changed
    for one in checked:
        study = studies.get(study_folder(recipe, one.study, len(checked)))
        if study is None:
            continue
        info, prefix = study.info, ""
        if len(checked) > 1:
            prefix = f"{recipe.title_of(one.study.data)}, {one.study.encoder}: "
        data = {name: info.data.get(name) for name in ("name", "digest", "rows", "warnings")}
        found[f"{prefix}data"], found[f"{prefix}model"] = data, info.model
        found[f"{prefix}settings"] = {"seeds": info.seeds, **info.settings}
    return found
