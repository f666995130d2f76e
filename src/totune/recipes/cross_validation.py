"""Runs a recipe's baselines by cross-validation."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from totune.baselines.base import Baseline
from totune.data.columns import find_columns
from totune.data.examples import Examples, TaskName
from totune.data.extraction import extract
from totune.data.readers import read_table
from totune.data.splits import shrink, strata
from totune.errors import DataError
from totune.progress import Bar, Progress
from totune.recipes.recipe import CrossValidation, Protocol, Recipe
from totune.recipes.results import Outcome, ProtocolGroup, Results, evaluate
from totune.tasks.base import TASKS

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def cross_validate(
    recipe: Recipe,
    plan: CrossValidation,
    file: Path,
    fraction: float,
    seeds: int,
    progress: Progress,
) -> Results:
    """Every row of the recipe under every protocol, `plan.folds` values per seed.

    Args:
        recipe: what to run.
        plan: the recipe's `run`.
        file: its data.
        fraction: share of the rows that is used, stratified.
        seeds: how often the rows are dealt into folds anew.
        progress: told of every fold.

    Raises:
        DataError: the data cannot be used, or a class has fewer rows than there are folds.
    """
    examples, task = _read(recipe, file, progress)
    examples = draw(examples, task, fraction, seed=0)
    passes = sum(seeds if protocol.shuffle else 1 for protocol in plan.protocols)
    with progress.bar(f"{recipe.name}: folds", passes * plan.folds * len(recipe.rows)) as bar:
        groups = tuple(
            _group(recipe, plan.folds, protocol, examples, task, seeds, bar)
            for protocol in plan.protocols
        )
    counts = np.unique([str(label) for label in examples.labels or ()], return_counts=True)
    shares = {str(label): int(count) for label, count in zip(*counts, strict=True)}
    facts: dict[str, dict[str, Any]] = {
        "data": {"file": file.name, "rows": len(examples), "labels": shares},
        "settings": {"folds": plan.folds, "seeds": seeds, "fraction": fraction},
    }
    return Results(groups, (), fraction, seeds, facts)


def _read(recipe: Recipe, file: Path, progress: Progress) -> tuple[Examples, TaskName]:
    table, (data,) = read_table(file), recipe.data.values()
    columns, _ = find_columns(table, text=data.settings["text"], label=data.settings["label"])
    examples = extract(table, columns, table.remarks)
    for warning in table.remarks.warnings:
        progress.warn(warning)
    return examples, columns.task


def draw(examples: Examples, task: TaskName, share: float, seed: int) -> Examples:
    """A stratified share of the rows."""
    return shrink({"train": examples}, task, share, seed)["train"]


def _group(
    recipe: Recipe,
    count: int,
    protocol: Protocol,
    examples: Examples,
    task: TaskName,
    seeds: int,
    bar: Bar,
) -> ProtocolGroup:
    dealt = []
    for seed in range(seeds if protocol.shuffle else 1):
        rows = draw(examples, task, protocol.share, seed)
        dealt.append((rows, folds(rows, task, count, seed if protocol.shuffle else None)))
    outcomes = []
    for row in recipe.rows:
        baseline = row.candidate().create()
        assert isinstance(baseline, Baseline)
        scores = [
            score_fold(baseline, rows.take(train), rows.take(test), task, bar)
            for rows, pairs in dealt
            for train, test in pairs
        ]
        values = {name: tuple(score[name] for score in scores) for name in scores[0]}
        paper = next(iter(row.paper.values()), {})
        outcomes.append(Outcome(row.label, values, paper))
    return ProtocolGroup(protocol.title, protocol.about, tuple(outcomes))


def folds(examples: Examples, task: TaskName, count: int, seed: int | None) -> Folds:
    """Stratified folds: (train, test) row numbers; in the order of the rows if `seed` is None.

    Raises:
        DataError: a class has fewer rows than there are folds.
    """
    of_row = strata(examples.labels or (), task)
    smallest = int(np.bincount(of_row).min())
    if smallest < count:
        raise DataError(
            f"{count} folds need {count} rows of every label, and one of the {len(examples):,} "
            f"rows' labels has {smallest}. Use a larger `fraction`."
        )
    splitter = StratifiedKFold(count, shuffle=seed is not None, random_state=seed)
    return list(splitter.split(np.zeros(len(examples)), of_row))


def score_fold(
    baseline: Baseline, train: Examples, test: Examples, task_name: TaskName, bar: Bar
) -> dict[str, float]:
    """Trains on one part and scores the other; the label space is that of the training part."""
    task = TASKS.get(task_name).from_examples(train)
    fitted = baseline.fit(train, task.targets(train.labels or ()), task, seed=0, embed=None)
    predictions = task.predictions(fitted.outputs(test), test.counts)
    bar.advance()
    return evaluate(task, task.targets(test.labels or ()), predictions)
