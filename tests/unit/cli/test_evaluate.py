"""`totune evaluate`."""

import json
from pathlib import Path

import pytest
from sklearn.metrics import f1_score
from tests.unit.cli.conftest import GOOD
from typer.testing import CliRunner

from totune.cli.app import app
from totune.errors import ConfigError, DataError

ROWS = "review,verdict\nwhat a joy,pos\nsuch a dull bore,neg\na joy indeed,neg\n"


def evaluate(*arguments: object) -> str:
    words = ["evaluate", *map(str, arguments)]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_measured_whole(tfidf_model: Path, tmp_path: Path):
    facts = json.loads(evaluate(tfidf_model, write(tmp_path / "labelled.csv", ROWS), "--json"))
    assert facts["rows"] == 3
    assert facts["metrics"]["accuracy"] == pytest.approx(2 / 3)


def test_a_person_gets_points(tfidf_model: Path, tmp_path: Path):
    out = evaluate(tfidf_model, write(tmp_path / "labelled.csv", ROWS))
    assert "Accuracy" in out
    assert "66.7" in out
    assert "3 rows" in out


def test_a_folder_is_measured_on_the_split_named(tfidf_model: Path, tmp_path: Path):
    write(tmp_path / "train.csv", "review,verdict\n" + "a joy,pos\na bore,neg\n" * 4)
    write(tmp_path / "dev.csv", "review,verdict\nquite a joy,pos\na dull thing,neg\n")
    write(tmp_path / "test.csv", "review,verdict\nmuch joy,neg\nsuch a bore,pos\n")
    scores = {
        split: json.loads(evaluate(tfidf_model, tmp_path, "--split", split, "--json"))["metrics"]
        for split in ("dev", "test")
    }
    assert scores["dev"]["accuracy"] == 1
    assert scores["test"]["accuracy"] == 0


def test_an_unknown_split_is_named(tfidf_model: Path):
    with pytest.raises(ConfigError, match=r"no split 'tst'\. Did you mean 'test'"):
        evaluate(tfidf_model, "x.csv", "--split", "tst")


def test_rows_without_labels_cannot_be_measured(tfidf_model: Path, tmp_path: Path):
    with pytest.raises(DataError, match=r"plain\.csv has no labels .* 'verdict'"):
        evaluate(tfidf_model, write(tmp_path / "plain.csv", "review\na joy\n"))


def test_rows_without_labels_are_left_out_of_a_file(tfidf_model: Path, tmp_path: Path):
    path = write(tmp_path / "some.csv", ROWS + "a neutral thing,\n")
    words = ["evaluate", str(tfidf_model), str(path), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert json.loads(result.stdout)["rows"] == 3
    assert "1 of 4 rows left out: no 'verdict'." in result.stderr


def test_a_split_that_is_drawn_from_train_is_told(tfidf_model: Path, tmp_path: Path):
    write(tmp_path / "train.csv", "review,verdict\n" + "a joy,pos\na bore,neg\n" * 10)
    words = ["evaluate", str(tfidf_model), str(tmp_path), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "test (2 rows) drawn from train" in result.stderr


def test_columns_of_other_names_can_be_named(tfidf_model: Path, tmp_path: Path):
    path = write(tmp_path / "other.csv", ROWS.replace("review,verdict", "body,gold"))
    for names in (("body", "gold"), ("1", "2")):
        facts = json.loads(
            evaluate(tfidf_model, path, "--text", names[0], "--label", names[1], "--json")
        )
        assert facts["metrics"]["accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(DataError, match=r"no labels .* 'verdict' .*--label names another"):
        evaluate(tfidf_model, path, "--text", "body")


@pytest.mark.parametrize("positive", ["pos", "neg"])
def test_f1_is_that_of_the_class_that_is_named(tfidf_model: Path, tmp_path: Path, positive: str):
    path = write(tmp_path / "labelled.csv", ROWS + "dull,neg\na joy,pos\n")
    words = (tfidf_model, path, "--positive-label", positive)
    facts = json.loads(evaluate(*words, "--json"))
    truth, told = ["pos", "neg", "neg", "neg", "pos"], ["pos", "neg", "pos", "neg", "pos"]
    assert facts["metrics"]["f1"] == pytest.approx(f1_score(truth, told, pos_label=positive))
    assert facts["positive_label"] == positive
    assert f"F1 is that of the class {positive!r}." in evaluate(*words)


def test_rows_that_the_model_was_trained_on_are_told(tfidf_model: Path, tmp_path: Path):
    rows = "".join(f"{text},pos\n" for text in (*GOOD[:2], "what a joy"))
    path = write(tmp_path / "labelled.csv", "review,verdict\n" + rows)
    words = ["evaluate", str(tfidf_model), str(path), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    told = (
        "Of 3 rows 2 (66.7%) have texts that the model was trained on: scores may be too high. "
        "Measure on rows that training has not seen."
    )
    assert f"warning: {told}" in result.stderr
    assert json.loads(result.stdout)["warnings"] == [told]
    assert "warning" not in evaluate(tfidf_model, write(tmp_path / "new.csv", ROWS))


def test_labels_that_the_model_never_saw_are_told(tfidf_model: Path, tmp_path: Path):
    path = write(tmp_path / "labelled.csv", ROWS.replace("pos", "positive"))
    facts = json.loads(evaluate(tfidf_model, path, "--json"))
    assert facts["warnings"] == [
        "The labels of 1 row ('positive': 1) are none that the model knows (neg, pos): it cannot "
        "predict them, and each counts as an error."
    ]
