"""Runs a recipe's strategies as a study."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from totune.api import compare
from totune.progress import Progress
from totune.recipes.recipe import Recipe, StudyPlan
from totune.recipes.results import Outcome, ProtocolGroup, Results, evaluate, run_test
from totune.runs.records import RunRecord
from totune.runs.store import Store
from totune.study.study import Study
from totune.tasks.base import Task, task_from_json

FOLDER = "study"  # of the study, inside the recipe's report folder


def run_study(
    recipe: Recipe,
    plan: StudyPlan,
    file: Path,
    out: Path,
    model: str | None,
    fraction: float,
    seeds: int,
    progress: Progress,
) -> Results:
    """Every row of the recipe over every seed; what `out` has finished already is not run again.

    Args:
        recipe: what to run.
        plan: the recipe's `run`.
        file: its data.
        out: the study goes to its folder `study`.
        model: another encoder than the recipe's.
        fraction: share of the train rows that is used.
        seeds: how many.
        progress: told of every run.
    """
    study = compare(
        file,
        out=out / FOLDER,
        progress=progress,
        model=model or plan.model,
        strategies=[asdict(row.member()) for row in recipe.rows],
        seeds=seeds,
        fraction=fraction,
        folds=1,
        text=recipe.data.text,
        label=recipe.data.label,
        **plan.settings,
    )
    store = Store(study.folder)
    task = task_from_json(study.info.data["task"])
    outcomes = {
        row.label: outcome(row.label, row.paper, study.records, store, task) for row in recipe.rows
    }
    tests = tuple(
        run_test(
            outcomes[test.first],
            outcomes[test.second],
            test.metric,
            test.paper.model_dump() if test.paper else None,
        )
        for test in recipe.tests
    )
    about = "One value per seed, on one test split."
    group = ProtocolGroup("Test scores", about, tuple(outcomes.values()))
    return Results((group,), tests, fraction, seeds, facts(study))


def outcome(
    label: str,
    paper: dict[str, float],
    records: Sequence[RunRecord],
    store: Store,
    task: Task,
) -> Outcome:
    """One row from its runs' predictions."""
    runs = [record for record in records if record.strategy == label]
    finished = [record for record in runs if record.status == "finished"]
    scores = []
    for record in finished:
        arrays = store.predictions(record)
        scores.append(evaluate(task, arrays["targets"], arrays["predictions"]))
    return Outcome(
        label,
        {name: tuple(score[name] for score in scores) for name in (scores[0] if scores else ())},
        paper,
        failed=len(runs) - len(finished),
        degenerate=sum(record.degenerate is not None for record in finished),
    )


def facts(study: Study) -> dict[str, dict[str, Any]]:
    """What the study was run on and with."""
    info = study.info
    data = {name: info.data.get(name) for name in ("name", "digest", "rows", "warnings")}
    return {
        "data": data,
        "model": info.model,
        "settings": {"seeds": info.seeds, **info.settings},
    }
