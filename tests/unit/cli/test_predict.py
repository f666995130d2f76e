"""`totune predict`."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from totune.cli.app import app
from totune.cli.predict import as_text, tell_missing_documents
from totune.data.conll import read_conll
from totune.data.examples import Examples
from totune.errors import ConfigError, DataError, ModelError


@pytest.fixture
def unlabelled_file(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    path.write_text("id,review\n1,what a joy\n2,\n3,such a dull bore\n", encoding="utf-8")
    return path


def predict(*arguments: object) -> str:
    words = ["predict", *map(str, arguments)]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def test_every_row_gets_a_prediction_in_order(tfidf_model: Path, unlabelled_file: Path):
    rows = list(csv.DictReader(predict(tfidf_model, unlabelled_file).splitlines()))
    assert [row["prediction"] for row in rows][::2] == ["pos", "neg"]
    assert len(rows) == 3
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)


def test_json_holds_the_predictions(tfidf_model: Path, unlabelled_file: Path):
    facts = json.loads(predict(tfidf_model, unlabelled_file, "--json"))
    assert facts["rows"] == 3
    assert facts["predictions"][0]["prediction"] == "pos"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_file_gets_what_the_screen_would(
    tfidf_model: Path, unlabelled_file: Path, tmp_path: Path, suffix: str
):
    output = tmp_path / f"out{suffix}"
    assert predict(tfidf_model, unlabelled_file, "--output", output) == ""
    rows = json.loads(predict(tfidf_model, unlabelled_file, "--json"))["predictions"]
    assert output.read_text(encoding="utf-8") == as_text(rows, suffix)


def test_the_columns_of_the_input_are_kept(tfidf_model: Path, unlabelled_file: Path):
    rows = list(csv.DictReader(predict(tfidf_model, unlabelled_file).splitlines()))
    assert list(rows[0]) == ["id", "review", "prediction", "probability"]
    assert [(row["id"], row["review"]) for row in rows] == [
        *(("1", "what a joy"), ("2", ""), ("3", "such a dull bore")),
    ]


def test_every_class_gets_a_column_if_asked(
    tfidf_model: Path, unlabelled_file: Path, tmp_path: Path
):
    shown = predict(tfidf_model, unlabelled_file, "--probabilities")
    rows = list(csv.DictReader(shown.splitlines()))
    for row in rows:
        shares = {name: float(row[f"probability:{name}"]) for name in ("neg", "pos")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert shares[row["prediction"]] == float(row["probability"]) == max(shares.values())
    output = tmp_path / "out.jsonl"
    predict(tfidf_model, unlabelled_file, "--probabilities", "--output", output)
    first = json.loads(output.read_text(encoding="utf-8").splitlines()[0])
    assert set(first["probabilities"]) == {"neg", "pos"}


def test_parquet_is_written(tfidf_model: Path, unlabelled_file: Path, tmp_path: Path):
    output = tmp_path / "out.parquet"
    for _ in range(2):  # earlier predictions are replaced
        predict(tfidf_model, unlabelled_file, "--probabilities", "--output", output)
    table = pq.read_table(output)
    names = ["id", "review", "prediction", "probability", "probability:neg", "probability:pos"]
    assert table.column_names == names
    assert table.column("prediction").to_pylist()[::2] == ["pos", "neg"]


def test_texts_are_read_from_the_command_line_and_from_standard_input(tfidf_model: Path):
    typed = predict(tfidf_model, "--text-input", "what a joy", "--text-input", "a dull bore")
    rows = list(csv.DictReader(typed.splitlines()))
    assert [(row["review"], row["prediction"]) for row in rows] == [
        *(("what a joy", "pos"), ("a dull bore", "neg")),
    ]
    words = ["predict", str(tfidf_model), "-"]
    piped = CliRunner().invoke(app, words, input="what a joy\na dull bore\n")
    assert piped.stdout == typed


def test_a_column_is_not_covered_by_a_prediction(tfidf_model: Path, tmp_path: Path):
    path = tmp_path / "new.csv"
    path.write_text("review,prediction\na joy,x\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has a column 'prediction' already"):
        predict(tfidf_model, path)


@pytest.mark.parametrize("extra", [(), ("new.csv", "--text-input", "a joy")])
def test_texts_come_from_one_place(tfidf_model: Path, extra: tuple[str, ...]):
    with pytest.raises(ConfigError, match=r"Name an INPUT file .* or give --text-input"):
        predict(tfidf_model, *extra)


def test_formats_quote_what_they_must():
    rows = [{"prediction": 'a,"b"\tc', "probability": 0.5}]
    assert as_text(rows, ".csv") == 'prediction,probability\n"a,""b""\tc",0.5\n'
    assert as_text(rows, ".tsv") == 'prediction\tprobability\n"a,""b""\tc"\t0.5\n'
    assert json.loads(as_text(rows, ".jsonl")) == rows[0]


def test_words_that_hold_spaces_stay_whole_in_columns():
    plain = [{"tokens": ("to", "Paris"), "tags": ("O", "B-LOC")}]
    assert as_text(plain, ".conll") == "to O\nParis B-LOC\n\n"
    spaced = [{"tokens": ("to", "New York\tCity"), "tags": ("O", "B-LOC")}, *plain]
    table = read_conll(as_text(spaced, ".conll").split("\n"), Path("x.conll"))
    assert table.columns["tokens"] == ['["to", "New York City"]', '["to", "Paris"]']
    assert table.columns["tags"] == ['["O", "B-LOC"]'] * 2


def test_an_unknown_format_is_refused_before_anything_is_read(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"Did you mean '\.csv'"):
        predict("nowhere", "nothing", "--output", tmp_path / "out.cvs")


def test_a_folder_without_a_model_is_named(tmp_path: Path, unlabelled_file: Path):
    with pytest.raises(ModelError, match="holds no model"):
        predict(tmp_path, unlabelled_file)


def test_a_missing_column_is_named(tfidf_model: Path, tmp_path: Path):
    path = tmp_path / "other.csv"
    path.write_text("id,reviews\n1,a joy\n", encoding="utf-8")
    with pytest.raises(DataError, match="reviews"):
        predict(tfidf_model, path)


@pytest.mark.parametrize("column", ["reviews", "2"])
def test_a_column_of_another_name_can_be_named(tfidf_model: Path, tmp_path: Path, column: str):
    path = tmp_path / "other.csv"
    path.write_text("id,reviews\n1,a joy\n2,a bore\n", encoding="utf-8")
    rows = list(csv.DictReader(predict(tfidf_model, path, "--text", column).splitlines()))
    assert [row["prediction"] for row in rows] == ["pos", "neg"]


def test_words_that_hold_spaces_stay_whole_in_a_table():
    rows = [
        {"tokens": ("to", "New York"), "tags": ("O", "B-LOC")},
        {"tokens": ("to", "Paris"), "tags": ("O", "B-LOC")},
    ]
    assert list(csv.reader(io.StringIO(as_text(rows, ".csv")))) == [
        ["tokens", "tags"],
        ['["to", "New York"]', '["O", "B-LOC"]'],
        ["to Paris", "O B-LOC"],
    ]


def test_a_missing_folder_is_told_before_anything_is_read(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"there is no folder .*none; make it first"):
        predict("nowhere", "nothing", "--output", tmp_path / "none" / "out.csv")


@pytest.mark.parametrize(
    ("framing", "document", "documents", "told"),
    [
        ({"document_context": True}, "document", None, True),
        ({"document_context": True}, "document", (0,), False),
        ({"document_context": True}, None, None, False),
        ({"document_context": False}, "document", None, False),
        ({}, "document", None, False),
    ],
)
def test_sentences_without_their_documents_are_told(
    framing: dict[str, bool],
    document: str | None,
    documents: tuple[int, ...] | None,
    told: bool,
    capsys: pytest.CaptureFixture[str],
):
    model = SimpleNamespace(about={"framing": framing, "columns": {"document": document}})
    tell_missing_documents(model, Examples(("a",), documents=documents))  # type: ignore[arg-type]
    assert ("marks no documents" in capsys.readouterr().err) is told


def test_a_folder_is_no_output(tmp_path: Path):
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        predict("nowhere", "nothing", "--output", tmp_path / "out.csv")


def test_columns_are_for_models_that_tag(tfidf_model: Path, unlabelled_file: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"\.conll is for models that tag words"):
        predict(tfidf_model, unlabelled_file, "--output", tmp_path / "x.conll")
