"""Studies of skewed classes: the metric, the weights, the thresholds and the model that is kept."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recorder import Recorder
from tests.tiny_data import BAD, GOOD, OTHER, save_encoder, write_scores, write_table

import totune
from totune.data.inputs import read_texts
from totune.errors import ConfigError
from totune.export import who_loads
from totune.runs.store import Store
from totune.study.study import Study

REASON = "98% of the train rows are of the class 'fine', so that an accuracy of 98 of 100"


def write_skewed(path: Path, rows: int = 600, every: int = 50, told: float = 1.0) -> Path:
    """text, label: one row in `every` is a report; a word tells that in a share `told` of them."""
    rng = random.Random(0)
    table = []
    for row in range(rows):
        report = row % every == 0
        words = rng.sample(OTHER, 4)
        words.append(rng.choice(BAD if report and rng.random() < told else GOOD))
        rng.shuffle(words)
        table.append((" ".join(words), "report" if report else "fine"))
    return write_table(path, ("text", "label"), table)


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    return write_skewed(tmp_path / "skewed.csv")


def compare(data: Path, strategies: list[str], **settings: Any) -> tuple[Study, Recorder]:
    told = Recorder()
    study = totune.compare(
        data,
        strategies=strategies,
        seeds=1,
        folds=1,
        progress=told,
        out=data.parent / "study",
        **settings,
    )
    return study, told


def test_98_rows_of_100_in_one_class_get_an_answer_and_a_model(skewed: Path) -> None:
    study, told = compare(skewed, ["majority", "tf-idf"])
    assert study.info.metric == "balanced-accuracy"
    assert any(line.startswith(REASON) for line in told.said)
    assert "2 classes (train rows): 'fine' 470, 'report' 10." in told.said
    assert any("1 class is rare" in warning for warning in told.warned)
    [reason] = [note for note in study.info.data["notes"] if note.startswith(REASON)]
    assert reason in (study.folder / "report.md").read_text().replace("\\", "")
    [majority, tf_idf] = study.records
    assert (majority.test["balanced-accuracy"], majority.test["accuracy"]) == (0.5, 59 / 60)
    assert tf_idf.config["task"]["class_weight"] == "balanced"
    assert tf_idf.config["task"]["weights"] == pytest.approx([480 / 940, 480 / 20])
    assert totune.load(study.best).predict(f"{OTHER[0]} {BAD[0]}") == "report"


def test_a_model_is_kept_though_all_its_answers_are_one(tmp_path: Path) -> None:
    data = write_skewed(tmp_path / "unknowable.csv", told=0.0)
    study, _ = compare(data, ["majority", "tf-idf"], metric="accuracy")
    assert study.info.data["task"] == {"name": "classification", "labels": ["fine", "report"]}
    assert study.records[1].degenerate == "predicts only 'fine'"
    assert study.advice.verdict == "none"
    assert study.advice.provisional == "tf-idf"
    assert "tf-idf is kept: its probabilities may still rank texts." in study.advice.headline
    assert totune.load(study.best).predict_proba("some words").sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "metric", "weighted"),
    [
        ({"metric": "f1"}, "f1", False),
        ({"options": {"task.class_weight": None}}, "balanced-accuracy", False),
        ({"metric": "pr-auc", "options": {"task.class_weight": "balanced"}}, "pr-auc", True),
    ],
)
def test_what_a_person_says_holds(
    skewed: Path, settings: dict[str, Any], metric: str, weighted: bool
) -> None:
    study, _ = compare(skewed, ["tf-idf", "majority"], **settings)
    assert study.info.metric == metric
    assert set(study.info.metrics) >= {metric, "accuracy", "f1"}
    assert ("weights" in study.records[0].config["task"]) is weighted
    tf_idf, majority = (record.test[metric] for record in study.records)
    assert tf_idf > majority if weighted else tf_idf == majority


def test_even_classes_are_compared_on_accuracy_as_before(tmp_path: Path) -> None:
    study, told = compare(write_skewed(tmp_path / "even.csv", 60, every=2), ["tf-idf"])
    assert study.info.metric == "accuracy"
    assert study.records[0].config["task"] == {
        "name": "classification",
        "labels": ["fine", "report"],
    }
    assert study.records[0].config["settings"] == {}
    assert "2 classes (train rows): 'fine' 24, 'report' 24." in told.said


def test_a_threshold_is_tuned_on_dev_and_kept_with_the_model(tmp_path: Path) -> None:
    data = write_skewed(tmp_path / "some.csv", every=5, told=0.4)
    plain, _ = compare(data, ["tf-idf"], metric="f1")
    study, recorder = compare(data, ["tf-idf"], metric="f1", tune_threshold=True)
    [record] = study.records
    assert record.fingerprint != plain.records[0].fingerprint
    [threshold] = record.thresholds
    assert 0 < threshold < 0.5
    assert record.dev["f1"] > plain.records[0].dev["f1"]
    arrays = Store(study.folder).predictions(record)
    assert arrays["thresholds"].tolist() == [threshold]
    decided = (arrays["scores"][:, 1] >= np.float64(threshold)).astype(int)
    assert arrays["predictions"].tolist() == decided.tolist()
    assert any("tuned on 60 dev rows, 12 of them 'report'" in text for text in recorder.warned)
    assert "Threshold" in (study.folder / "report.md").read_text()

    model = totune.load(study.best)
    assert model.about["task"]["thresholds"] == [threshold]
    told = f"Tuned on dev, it predicts 'report' from a probability of {threshold:.3g} on"
    assert who_loads(study.best)[-1].startswith(told)
    rows = read_texts(*_texts(data), None, model_columns(model))
    chosen = model.predict(list(rows.texts))
    probable = model.predict_proba(list(rows.texts))[:, 1] >= np.float64(threshold)
    assert chosen == [("fine", "report")[each] for each in probable.astype(int)]


def _texts(data: Path) -> tuple[list[str]]:
    lines = data.read_text().splitlines()[1:61]
    return ([line.rsplit(",", 1)[0] for line in lines],)


def model_columns(model: totune.Predictor) -> Any:
    from totune.data.examples import Columns

    return Columns(**model.about["columns"])


def test_what_cannot_have_an_option_says_so_before_training(skewed: Path, tmp_path: Path) -> None:
    focal = {"options": {"task.focal_gamma": 2}}
    with pytest.raises(ConfigError, match="'tf-idf' is logistic regression, which has no focal_g"):
        compare(skewed, ["tf-idf", "majority"], **focal)
    with pytest.raises(ConfigError, match=r"no task has an option 'task.focal'. Did you mean"):
        compare(skewed, ["majority"], options={"task.focal": 2})
    scores = write_scores(tmp_path / "scores.csv")
    with pytest.raises(ConfigError, match="the task regression has no option 'class_weight'"):
        compare(scores, ["majority"], options={"task.class_weight": "balanced"})
    with pytest.raises(ConfigError, match="the task is regression"):
        compare(scores, ["majority"], tune_threshold=True)
    with pytest.raises(ConfigError, match="metric 'roc-auc' is none of the task regression"):
        compare(scores, ["majority"], metric="roc-auc")


def test_a_tuned_encoder_has_weights_threshold_and_probabilities(tmp_path: Path) -> None:
    data = write_skewed(tmp_path / "some.csv", rows=100, every=5)
    strategies = ["feature-extraction", {"strategy": "fine-tuning", "options": {}}]
    study, _ = compare(
        data,
        strategies,  # type: ignore[arg-type]
        metric="macro-f1",
        tune_threshold=True,
        model=str(save_encoder(tmp_path / "encoder")),
        options={"task.class_weight": "balanced", "fine-tuning.num_train_epochs": 1},
    )
    assert [len(record.thresholds) for record in study.records] == [1, 1]
    assert all("macro-f1" in epoch.dev for record in study.records for epoch in record.epochs)
    model = totune.load(study.best)
    best = next(r for r in study.records if r.strategy == study.advice.provisional)
    assert list(model.task.thresholds) == best.thresholds
    ranked = totune.compare(
        data,
        strategies=["feature-extraction"],
        seeds=1,
        folds=1,
        metric="roc-auc",
        model=str(tmp_path / "encoder"),
        out=study.folder,
    )
    assert 0 <= ranked.records[0].test["roc-auc"] <= 1
    assert ranked.records[0].thresholds == []
