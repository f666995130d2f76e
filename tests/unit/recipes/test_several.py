"""A recipe of several data sets from check to report: variants, ensembles, absent cells, faults."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews, write_scores

from totune.errors import ConfigError, DataError
from totune.recipes import reproduce as module
from totune.recipes.loading import parse_recipe
from totune.recipes.planned import models_of, plan_studies
from totune.recipes.recipe import Recipe
from totune.recipes.reproduce import check_recipe, reproduce
from totune.recipes.study import study_folder

CONTENT: dict[str, Any] = {
    "name": "mine",
    "title": "Two data sets and one that is absent",
    "paper": "A paper",
    "data": {
        "reviews": {
            "title": "Reviews",
            "sources": [{"train": "reviews.csv", "dev": "more.csv"}],
            "obtain": "It is on the shelf.",
            "train_rows": 100,
            "evaluate_on": "dev",
            "settings": {"text": "text", "label": "label"},
        },
        "scores": {
            "title": "Scores",
            "sources": ["elsewhere.csv", "scores.csv"],
            "obtain": "It is in the drawer.",
            "metrics": ["pearson"],
            "settings": {"text": "text", "label": "score"},
        },
        "lost": {"title": "Lost", "sources": ["lost.csv"], "obtain": "It is nowhere."},
    },
    "encoders": {"bert": {"paper": "BERT"}},
    "rows": [
        {
            "label": "frozen",
            "strategy": "feature-extraction",
            "options": {"solver": "gradient", "num_train_epochs": 2},
            "variants": {"scores": {"options": {"num_train_epochs": 1}}},
            "paper": {"reviews": {"accuracy": 0.8}, "scores": {"pearson": 0.5}},
        },
        {
            "label": "solved",
            "strategy": "feature-extraction",
            "paper": {"reviews": {"accuracy": 0.7}, "scores": {"pearson": 0.6}},
        },
        {"label": "both", "ensemble": ["frozen", "solved"], "only": ["reviews"]},
    ],
    "differences": [{"label": "frozen - solved", "first": "frozen", "second": "solved"}],
    "analyses": [{"name": "layer-probe", "data": ["reviews"], "options": {"penalty": "none"}}],
    "run": {"kind": "study", "seeds": 1, "settings": {"keep_weights": "all"}},
    "notes": ["It is small."],
}


def recipe_of(**changes: Any) -> Recipe:
    return parse_recipe({**copy.deepcopy(CONTENT), **changes})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_reviews(folder / "reviews.csv", 60)
    write_reviews(folder / "more.csv", 30, seed=1)
    write_scores(folder / "scores.csv", 60)
    save_encoder(folder / "encoder")
    return folder


@pytest.fixture(scope="module")
def report(data: Path) -> Path:
    """The report's folder, with a row that cannot do its task left out."""
    rows = [*CONTENT["rows"], {"label": "pairs", "strategy": "fine-tuning", "head": "esim"}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load_recipe", lambda name: recipe_of(rows=rows))
        return reproduce(
            "mine",
            data_dir=data,
            out=data / "out",
            keep_going=True,
            model=str(data / "encoder"),
            options={"weight_decay": 0.5, "frozen.warmup_ratio": 0.0},
            progress=Recorder(),
        )


def test_every_cell_has_a_score_or_a_reason(report: Path) -> None:
    results = json.loads((report / "results.json").read_text(encoding="utf-8"))
    groups = {group["data"]: group["outcomes"] for group in results["groups"]}
    scored = {
        name: [row["label"] for row in rows if row["scores"]] for name, rows in groups.items()
    }
    assert scored == {
        "reviews": ["frozen", "solved", "both"],
        "scores": ["frozen", "solved"],
        "lost": [],
    }
    absent = {(name, row["label"]): row["absent"] for name, rows in groups.items() for row in rows}
    assert "data absent: lost.csv" in absent["lost", "frozen"]
    assert "It is nowhere." in absent["lost", "frozen"]
    assert "compares two texts" in absent["reviews", "pairs"]


def test_the_report_has_a_table_across_data_sets(report: Path) -> None:
    text = (report / "report.md").read_text(encoding="utf-8")
    assert "| Row | Reviews (Accuracy) | Scores (Pearson" in text
    assert "(paper 0.800)" in text
    assert "not run: data absent" in text
    assert "frozen - solved" in text
    assert "(paper +0.100)" in text
    assert "60 of the full set's 100 train rows were used" in text
    assert "on the development set, which also chose among epochs" in text
    assert "Reviews: What each layer tells about the labels" in text
    assert "logistic regression without penalty" in text


def test_dev_is_scored_without_shrinking_train(report: Path) -> None:
    info = json.loads((report / "studies/reviews/study.json").read_text(encoding="utf-8"))
    assert info["data"]["rows"] == {"train": 60, "dev": 30, "test": 30}


def test_what_a_person_sets_holds_against_the_recipe(report: Path) -> None:
    frozen = []
    for record in (report / "studies").glob("*/runs/*/record.json"):
        config = json.loads(record.read_text(encoding="utf-8"))["config"]
        if config["label"] == "frozen":
            frozen.append((config["strategy"]["options"], config["settings"]["metric"]))
    assert {options["weight_decay"] for options, _ in frozen} == {0.5}
    assert {options["warmup_ratio"] for options, _ in frozen} == {0.0}
    assert {(m, options["num_train_epochs"]) for options, m in frozen} == {
        ("accuracy", 2),
        ("pearson", 1),
    }


def test_a_fault_names_recipe_row_and_data_before_anything_is_trained(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"label": "pairs", "strategy": "fine-tuning", "head": "esim", "only": ["reviews"]}]
    changed = copy.deepcopy(CONTENT["data"])
    changed["scores"]["settings"]["label"] = "scroe"
    recipe = recipe_of(rows=[*CONTENT["rows"], *rows], data=changed, differences=[], analyses=[])
    monkeypatch.setattr(module, "load_recipe", lambda name: recipe)
    with pytest.raises(ConfigError) as caught:
        check_recipe("mine", data_dir=data, model=str(data / "encoder"))
    reviews, scores = caught.value.faults
    assert reviews.startswith("mine, row 'pairs' on Reviews: head 'esim' compares two texts")
    assert scores.startswith("mine, Scores: ")
    assert "no column 'scroe'" in scores
    assert "Did you mean 'score'?" in scores or "'score'" in scores
    with pytest.raises(ConfigError):
        reproduce("mine", data_dir=data, out=tmp_path / "out", model=str(data / "encoder"))
    assert not (tmp_path / "out").exists()


def test_a_recipe_without_any_data_is_refused_and_checks_say_what_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "load_recipe", lambda name: recipe_of())
    with pytest.raises(DataError, match=r"Nothing of mine can run.*It is on the shelf"):
        reproduce("mine", data_dir=tmp_path, out=tmp_path / "out")
    _, checked = check_recipe("mine", data_dir=tmp_path)
    assert [one.study.lacking.partition(":")[0] for one in checked] == ["data absent"] * 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"label": "x"}, "label is what the recipe mine says itself"),
        ({"sedes": 3}, r"no setting 'sedes'. Did you mean 'seeds'"),
        ({"options": {"layer_decoy": 0.5}}, "no chosen strategy has an option 'layer_decoy'"),
        ({"fraction": 2.0}, "fraction=2.0 is out of range"),
    ],
)
def test_settings_that_cannot_be_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], told: str
) -> None:
    monkeypatch.setattr(module, "load_recipe", lambda name: recipe_of())
    with pytest.raises(ConfigError, match=told):
        check_recipe("mine", data_dir=tmp_path, **settings)


def test_models_are_named_for_each_encoder() -> None:
    two = recipe_of(encoders={"bert": {}, "elmo": {"model": None, "obtain": "Ask."}})
    assert models_of(two, None) == {"bert": "minilm", "elmo": None}
    assert models_of(two, "elmo=a/b, bert=c") == {"bert": "c", "elmo": "a/b"}
    assert models_of(recipe_of(), "a/b") == {"bert": "a/b"}
    with pytest.raises(ConfigError, match=r"mine compares bert and elmo.*`model=bert=MODEL`"):
        models_of(two, "a/b")


def test_an_encoder_that_is_not_there_is_an_absent_cell(data: Path) -> None:
    encoders = {"bert": {}, "elmo": {"model": None, "paper": "ELMo", "obtain": "Ask."}}
    rows = [*CONTENT["rows"], {"label": "elmo", "strategy": "fine-tuning", "encoder": "elmo"}]
    recipe = recipe_of(encoders=encoders, rows=rows)
    studies = plan_studies(recipe, data, {})
    lacking = {(one.data, one.encoder): one.lacking for one in studies}
    assert lacking["reviews", "bert"] == ""
    assert lacking["reviews", "elmo"] == "encoder absent: ELMo. Ask."
    assert study_folder(recipe, studies[1], len(studies)) == "studies/reviews-elmo"
