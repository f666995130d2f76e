"""Recipes from their YAML files, with every fault of form and of names found at once."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import yaml
from pydantic import ValidationError

from totune.errors import ConfigError
from totune.metrics import METRICS
from totune.recipes.recipe import (
    PARAMETERS,
    Judgement,
    ParameterPlan,
    Recipe,
    RecipeRow,
    SplitFiles,
    StudyPlan,
)
from totune.registry import did_you_mean, option_names
from totune.runs.config import check_candidates
from totune.runs.settings import Settings

SUFFIX = ".yaml"


def recipe_names() -> list[str]:
    """The recipes that come with totune."""
    files = resources.files("totune.recipes").iterdir()
    return sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX))


def load_recipe(name: str) -> Recipe:
    """The recipe called `name`.

    Raises:
        ConfigError: there is none (with the nearest name), or it has faults (all of them).
    """
    if name not in recipe_names():
        raise ConfigError(
            f"There is no recipe called {name!r}. {did_you_mean(name, recipe_names())}"
        )
    text = resources.files("totune.recipes").joinpath(name + SUFFIX).read_text(encoding="utf-8")
    return parse_recipe({"name": name, **yaml.safe_load(text)})


def parse_recipe(content: Mapping[str, Any]) -> Recipe:
    """A recipe from plain data.

    Raises:
        ConfigError: with every fault, each with its place.
    """
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        owner = f"recipe {content.get('name')}"
        raise ConfigError(
            [f"{owner}: {_place(fault['loc'])}: {fault['msg']}." for fault in error.errors()]
        ) from None
    faults = [*_name_faults(recipe), *_setting_faults(recipe)]
    faults = [*_candidate_faults(recipe), *faults] if not _row_faults(recipe) else faults
    faults += _row_faults(recipe)
    if faults:
        raise ConfigError([f"recipe {recipe.name}: {fault}" for fault in dict.fromkeys(faults)])
    return recipe


def _place(location: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in location)


def _row_faults(recipe: Recipe) -> list[str]:
    """Rows that are neither a candidate nor an ensemble, and recipes without what they run."""
    faults = [
        f"row {row.label!r} needs a strategy or an ensemble, and not both."
        for row in recipe.rows
        if bool(row.strategy) == bool(row.ensemble)
    ]
    faults += [
        f"data.{name}: evaluate_on=dev needs sources of a file for each split."
        for name, data in recipe.data.items()
        if data.evaluate_on == "dev"
        and not all(isinstance(one, SplitFiles) for one in data.sources)
    ]
    if not isinstance(recipe.run, Judgement | ParameterPlan):
        faults += [f"there is no {name}." for name in ("data", "rows") if not getattr(recipe, name)]
    return faults


def _candidate_faults(recipe: Recipe) -> list[str]:
    """What is wrong with rows before any data is read: strategies, heads, options, labels."""
    faults: list[str] = []
    for data in recipe.data or [""]:
        rows = [row for row in recipe.rows if row.strategy and row.runs_on(data)]
        candidates = [row.candidate(data) for row in rows]
        try:
            made = check_candidates(candidates)
        except ConfigError as error:
            faults += error.faults
            continue
        if recipe.run.kind == "cross-validation":
            faults += [
                f"{row.label!r} is no baseline that does without an encoder; only such are "
                "cross-validated."
                for row, candidate, one in zip(rows, candidates, made, strict=True)
                if not candidate.is_baseline or one.needs_encoder  # type: ignore[union-attr]
            ]
    return faults


def _setting_faults(recipe: Recipe) -> list[str]:
    """Settings that `totune.compare` does not have."""
    known = option_names(Settings)
    given = {f"data.{name}": data.settings for name, data in recipe.data.items()}
    if isinstance(recipe.run, StudyPlan):
        given["run"] = recipe.run.settings
    return [
        f"{place}.settings: there is no setting {name!r}. {did_you_mean(name, known)}"
        for place, settings in given.items()
        for name in settings
        if name not in known
    ]


def _name_faults(recipe: Recipe) -> list[str]:
    """Every row, data set, encoder or metric that the recipe refers to and does not have."""
    labels, data = [row.label for row in recipe.rows], list(recipe.data) or [PARAMETERS]
    faults = [
        f"{place} names the {noun} {name!r}. {did_you_mean(name, known)}"
        for place, noun, names, known in (
            *(("a test", "row", (test.first, test.second), labels) for test in recipe.tests),
            *(
                (f"difference {each.label!r}", "row", (each.first, each.second), labels)
                for each in recipe.differences
            ),
            *((f"row {row.label!r}", "row", row.ensemble, labels) for row in recipe.rows),
            *((f"row {row.label!r}", "data set", _data_of(row), data) for row in recipe.rows),
            *(
                (f"row {row.label!r}", "encoder", filter(None, [row.encoder]), recipe.encoders)
                for row in recipe.rows
            ),
            *((f"analysis {one.name!r}", "data set", one.data, data) for one in recipe.analyses),
            *((f"analysis {one.name!r}", "row", one.rows, labels) for one in recipe.analyses),
        )
        for name in names
        if name not in known
    ]
    return faults + _metric_faults(recipe)


def _data_of(row: RecipeRow) -> list[str]:
    return [*row.only, *row.variants, *row.paper]


def _metric_faults(recipe: Recipe) -> list[str]:
    known = [*METRICS, PARAMETERS] if recipe.run.kind == "plan" else [*METRICS]
    told = {name: recipe.metrics_of(name) for name in recipe.data}
    everywhere = {name for names in told.values() for name in names} or set(recipe.metrics)
    faults = [
        f"there is no metric {name!r}. {did_you_mean(name, known)}"
        for name in dict.fromkeys([*recipe.metrics, *sorted(everywhere)])
        if name not in known
    ]
    used = [(name, everywhere) for name in [*recipe.tolerance, *(t.metric for t in recipe.tests)]]
    for row in recipe.rows:
        for data, figures in row.paper.items():
            used += [(name, set(told.get(data, everywhere))) for name in figures]
    return faults + [
        f"{name!r} is not among the recipe's metrics. {did_you_mean(name, there)}"
        for name, there in used
        if name not in there
    ]
