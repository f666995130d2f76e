import copy

import pytest
import yaml

from totune.errors import ConfigError
from totune.recipes.loading import load_recipe, parse_recipe, recipe_names
from totune.recipes.recipe import Judgement

MINIMAL = yaml.safe_load(
    """
name: mine
title: A table
paper: A paper
data:
  films:
    sources: [a/train.csv, train.csv]
    obtain: It is on the shelf.
    settings: {text: text, label: label}
metrics: [accuracy, f1]
rows:
  - {label: Words, strategy: counts, paper: {films: {accuracy: 0.8}}}
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
    figures = [one for row in recipe.rows for one in row.paper.values()]
    scores = [value for one in figures for name, value in one.items() if name != "parameters"]
    assert all(0 < value < 1 for value in scores)
    told = figures or any(each.paper for each in recipe.differences)
    assert told or recipe.analyses or isinstance(recipe.run, Judgement)


def test_the_hart_recipes_hold_the_figures_of_the_paper():
    sparse, bert = load_recipe("hart-sparse"), load_recipe("hart-bert")
    assert [tuple(row.paper["tweets"].values()) for row in sparse.rows] == [
        (0.795, 0.742),
        (0.796, 0.746),
        (0.793, 0.735),
    ]
    assert [tuple(row.paper["tweets"].values()) for row in bert.rows[:3]] == [
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


def test_faults_of_form_are_reported_together():
    films = {**MINIMAL["data"]["films"], "txt": "text"}
    content = changed(metrics=[], data={"films": films}, run={"kind": "study", "seeds": 0})
    with pytest.raises(ConfigError) as caught:
        parse_recipe(content)
    told = str(caught.value)
    for place in ("metrics", "data.films.txt", "run.study.seeds"):
        assert f"recipe mine: {place}: " in told


def test_faults_of_content_are_reported_together():
    rows = [
        {"label": "A", "strategy": "count", "options": {}},
        {
            "label": "B",
            "strategy": "counts",
            "options": {"ngram": 2},
            "paper": {"films": {"f2": 0.1}},
        },
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


def test_names_that_lead_nowhere_are_reported_with_their_place():
    row = {"label": "A", "strategy": "counts"}
    content = changed(
        rows=[
            {**row, "only": ["film"], "encoder": "bret"},
            {"label": "B", "ensemble": ["A", "C"]},
            {"label": "D"},
        ],
        encoders={"bert": {}},
        differences=[{"label": "x", "first": "A", "second": "E"}],
        data={"films": {**MINIMAL["data"]["films"], "settings": {"txt": "text"}}},
    )
    with pytest.raises(ConfigError) as caught:
        parse_recipe(content)
    told = "\n".join(caught.value.faults)
    assert "row 'A' names the data set 'film'. Did you mean 'films'?" in told
    assert "row 'A' names the encoder 'bret'. Did you mean 'bert'?" in told
    assert "row 'B' names the row 'C'" in told
    assert "difference 'x' names the row 'E'" in told
    assert "row 'D' needs a strategy or an ensemble" in told
    assert "data.films.settings: there is no setting 'txt'. Did you mean 'text'?" in told


def test_a_variant_changes_a_row_on_one_data_set_alone():
    (row,) = parse_recipe(
        changed(
            rows=[
                {
                    "label": "A",
                    "strategy": "fine-tuning",
                    "options": {"layers": "top", "weight_decay": 0.0},
                    "variants": {"films": {"head": "bcn", "options": {"layers": "mean"}}},
                }
            ],
            run={"kind": "study"},
        )
    ).rows
    assert row.candidate().head == "linear"
    found = row.candidate("films")
    assert (found.head, found.strategy, found.label) == ("bcn", "fine-tuning", "A")
    assert found.options == {"layers": "mean", "weight_decay": 0.0}


def test_tables_of_the_papers_are_as_printed():
    glue = load_recipe("adapters-glue")
    means = {
        row.label: sum(next(iter(one.values())) for one in row.paper.values()) for row in glue.rows
    }
    assert {label: round(total / 9, 3) for label, total in means.items()} == {
        "full fine-tuning": 0.797,
        "Houlsby": 0.794,
        "not shared": 0.795,  # the paper's 79.2 is not the mean of its columns
        "3-shared": 0.794,
    }
    text = load_recipe("adapters-text")
    means = {row.label: sum(one["accuracy"] for one in row.paper.values()) for row in text.rows}
    assert round(means["full fine-tuning"] / 12, 3) == 0.714
    assert len(text.data) == 12
    adaptation = load_recipe("peters-adaptation")
    rows = {row.label: row.paper for row in adaptation.rows}
    gains = [
        next(iter(rows["BERT, fine-tuning"][name].values()))
        - next(iter(rows["BERT, feature extraction"][name].values()))
        for name in adaptation.data
    ]
    assert [round(100 * gain, 1) for gain in gains] == [0.2, 0.5, 0.0, 1.0, 2.3, 6.7, 4.2]
