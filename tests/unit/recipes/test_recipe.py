import copy

import pytest
import yaml

from totune.errors import ConfigError, DataError
from totune.recipes.recipe import load_recipe, parse_recipe, recipe_names

MINIMAL = yaml.safe_load(
    """
name: mine
title: A table
paper: A paper
data: {files: [a/train.csv, train.csv], obtain: It is on the shelf., text: text, label: label}
metrics: [accuracy, f1]
rows:
  - {label: Words, strategy: counts, paper: {accuracy: 0.8}}
run: {kind: cross-validation, protocols: [{title: All, about: Everything.}]}
"""
)


def changed(**values):
    return {**copy.deepcopy(MINIMAL), **values}


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_sound_and_says_what_differs(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.notes
    assert any(row.paper for row in recipe.rows)
    assert all(0 < value < 1 for row in recipe.rows for value in row.paper.values())


def test_the_hart_recipes_hold_the_figures_of_the_paper():
    sparse, bert = load_recipe("hart-sparse"), load_recipe("hart-bert")
    assert [tuple(row.paper.values()) for row in sparse.rows] == [
        (0.795, 0.742),
        (0.796, 0.746),
        (0.793, 0.735),
    ]
    assert [tuple(row.paper.values()) for row in bert.rows[:3]] == [
        (0.824, 0.872),
        (0.833, 0.863),
        (0.831, 0.850),
    ]
    told = [test.paper for test in bert.tests if test.paper]
    assert [(one.t, one.df, one.p) for one in told] == [(-0.91, 13, 0.38), (-1.5, 16, 0.14)]
    assert bert.run.seeds == sparse.run.folds == 10
    assert {row.options["learning_rate"] for row in bert.rows if row.paper} == {5e-5}


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"no recipe called 'hart-spars'.*'hart-sparse'"):
        load_recipe("hart-spars")


def test_the_first_file_that_is_there_is_read(tmp_path):
    recipe = parse_recipe(MINIMAL)
    (tmp_path / "train.csv").touch()
    assert recipe.data_file(tmp_path) == tmp_path / "train.csv"
    (tmp_path / "a").mkdir()
    (tmp_path / "a/train.csv").touch()
    assert recipe.data_file(tmp_path) == tmp_path / "a/train.csv"


def test_missing_data_is_named_with_its_source_and_the_option(tmp_path):
    with pytest.raises(DataError) as caught:
        parse_recipe(MINIMAL).data_file(tmp_path)
    told = str(caught.value)
    assert str(tmp_path / "a/train.csv") in told
    assert "It is on the shelf." in told
    assert "`data_dir`" in told


def test_faults_of_form_are_reported_together():
    content = changed(
        metrics=[], data={**MINIMAL["data"], "txt": "text"}, run={"kind": "study", "seeds": 0}
    )
    with pytest.raises(ConfigError) as caught:
        parse_recipe(content)
    told = str(caught.value)
    for place in ("metrics", "data.txt", "run.study.seeds"):
        assert f"recipe mine: {place}: " in told


def test_faults_of_content_are_reported_together():
    rows = [
        {"label": "A", "strategy": "count", "options": {}},
        {"label": "B", "strategy": "counts", "options": {"ngram": 2}, "paper": {"f2": 0.1}},
    ]
    tests = [{"first": "A", "second": "BB", "metric": "accuracy"}]
    with pytest.raises(ConfigError) as caught:
        parse_recipe(changed(rows=rows, tests=tests, metrics=["accuracy", "f1", "acc"]))
    told = caught.value.faults
    assert len(told) == 5
    assert "Did you mean 'counts'?" in told[0]
    assert "Did you mean 'ngrams'?" in told[1]
    assert "the row 'BB'. Did you mean" in told[2]
    assert "no metric 'acc'" in told[3]
    assert "'f2' is not among the recipe's metrics" in told[4]


@pytest.mark.parametrize("strategy", ["fine-tuning", "sentence-embedding"])
def test_only_baselines_without_encoder_are_cross_validated(strategy):
    rows = [{"label": "A", "strategy": strategy}]
    with pytest.raises(ConfigError, match="'A' is no baseline that does without an encoder"):
        parse_recipe(changed(rows=rows))
