"""Every recipe that comes with totune is sound, and its rows can do what they are to do."""

from pathlib import Path
from typing import Any

import pytest
from tests.encoder_zoo import tiny_encoder

from totune.cli.reproduce import _OF_RECIPES as HIDDEN
from totune.cli.reproduce import RECIPE_OPTIONS
from totune.data.tagging.schemes import Scheme
from totune.recipes.loading import load_recipe, recipe_names
from totune.recipes.planned import OF_RECIPES
from totune.recipes.recipe import Recipe, StudyPlan
from totune.recipes.reproduce import check_recipe
from totune.runs.model_spec import ModelSpec
from totune.strategies.defaults import TrainingFacts
from totune.tasks.base import TASKS, Task

STUDIES = [name for name in recipe_names() if isinstance(load_recipe(name).run, StudyPlan)]
SCHEME: Scheme = "iob2"
SPACES: dict[str, dict[str, Any]] = {
    "classification": {"labels": ["0", "1"]},
    "regression": {"low": 0.0, "high": 5.0},
    "tagging": {"labels": ["O", "B-X", "I-X"], "scheme": SCHEME},
}


def task_of(recipe: Recipe, data: str) -> tuple[Task, bool]:
    """The task of a data set, and whether it has pairs."""
    source = recipe.data[data]
    kind = source.settings.get("task", "classification")
    named = [source.settings, *(getattr(one, "settings", {}) for one in source.sources)]
    return TASKS.create(kind, SPACES[kind]), any("pair" in settings for settings in named)


@pytest.mark.parametrize("name", STUDIES)
def test_every_row_can_be_planned_for_its_task(name: str) -> None:
    recipe = load_recipe(name)
    encoder = tiny_encoder("bert")
    for data in recipe.data:
        task, has_pairs = task_of(recipe, data)
        assert set(recipe.metrics_of(data)) <= set(task.metrics)
        for row in recipe.rows:
            candidate = row.candidate(data)
            if not row.runs_on(data) or row.ensemble or candidate.is_baseline:
                continue
            facts = TrainingFacts(1000, 100, encoder.width, task.name)
            spec = ModelSpec.of_candidate(candidate, facts, task, encoder, has_pairs=has_pairs)
            assert spec.check()[1]


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_passes_a_check_without_data(name: str, tmp_path: Path) -> None:
    recipe, checked = check_recipe(name, data_dir=tmp_path)
    assert all(one.study.lacking for one in checked)
    assert all(data.obtain for data in recipe.data.values())


def test_the_command_has_every_option_that_recipes_leave_open() -> None:
    assert HIDDEN == OF_RECIPES | {"candidate"}
    names = {option.name for option in RECIPE_OPTIONS}
    wanted = {"search", "set", "jobs", "executor", "precision", "max_length", "seeds", "fraction"}
    assert wanted | {"race", "model", "track"} <= names
    assert all(option.default is None for option in RECIPE_OPTIONS)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_passes_a_check_on_the_data_at_hand(name: str, shared: Path) -> None:
    _, checked = check_recipe(name, data_dir=shared / "data")
    assert all(one.train_rows or one.study.lacking for one in checked)


def test_the_page_of_the_papers_has_every_recipe() -> None:
    page = Path(__file__).resolve().parents[3] / "docs/papers.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in recipe_names() if f"totune reproduce {name}" not in text] == []
