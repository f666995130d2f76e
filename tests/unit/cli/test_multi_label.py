"""`totune predict` and `totune evaluate` with a model of several labels per row."""

import csv
import json
import re
from pathlib import Path

import pytest
from tests.unit.cli.conftest import BAD, GOOD
from typer.testing import CliRunner

from totune.baselines.base import BASELINES
from totune.cli.app import app
from totune.data.examples import Examples
from totune.export import save_baseline
from totune.tasks.multi_label import MultiLabel

LABELS = (("funny", "warm"),) * 3 + ((), ("dull",), ("dull",))


@pytest.fixture(scope="module")
def label_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train = Examples(GOOD + BAD, LABELS)
    task = MultiLabel.from_examples(train)
    baseline = BASELINES.create("tf-idf", {"C": 100.0})
    fitted = baseline.fit(train, task.targets(LABELS), task, 0, None)
    columns = {"text": "text", "label": "labels", "pair": None, "task": "multi-label"}
    about = {"columns": columns, "pairs": False, "max_length": 32, "model": "minilm"}
    save_baseline(folder, baseline, fitted, task, about)
    return folder


@pytest.fixture
def new_file(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    rows = "a joy,warm|funny\na dull waste of time,dull\ngreat fun,\n"
    path.write_text(f"text,labels\n{rows}", encoding="utf-8")
    return path


def totune(*arguments: object) -> str:
    words = list(map(str, arguments))
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def test_columns_hold_joined_labels_and_every_probability(label_model: Path, new_file: Path):
    rows = list(csv.DictReader(totune("predict", label_model, new_file).splitlines()))
    assert [row["prediction"] for row in rows] == ["funny|warm", "dull", "funny|warm"]
    names = ["prediction", "probability:dull", "probability:funny", "probability:warm"]
    assert list(rows[0])[-4:] == names
    assert float(rows[0]["probability:warm"]) > 0.5 > float(rows[0]["probability:dull"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_predictions_replace_earlier_ones(
    label_model: Path, new_file: Path, tmp_path: Path, suffix: str
):
    output = tmp_path / f"out{suffix}"
    for _ in range(2):
        totune("predict", label_model, new_file, "--output", output)
    first = output.read_text(encoding="utf-8").splitlines()[suffix != ".jsonl"]
    if suffix == ".jsonl":
        row = json.loads(first)
        assert row["prediction"] == ["funny", "warm"]
        assert list(row["probabilities"]) == ["dull", "funny", "warm"]
    else:
        assert "funny|warm" in re.split(r"[,\t]", first)


def test_labels_are_measured_together_and_one_by_one(label_model: Path, new_file: Path):
    facts = json.loads(totune("evaluate", label_model, new_file, "--json"))
    assert facts["rows"] == 3
    assert facts["metrics"]["exact-match"] == pytest.approx(2 / 3)
    assert facts["metrics"]["precision:warm"] == 0.5
    out = totune("evaluate", label_model, new_file)
    assert "Micro F1" in out
    assert ["warm", "1", "50.0", "100.0", "66.7"] in [line.split() for line in out.splitlines()]


def test_columns_of_0_and_1_are_named_at_evaluation(label_model: Path, tmp_path: Path):
    path = tmp_path / "flags.csv"
    path.write_text("text,warm,funny,dull\na joy,1,1,0\ndull waste,0,0,1\n", encoding="utf-8")
    words = ("evaluate", label_model, path, "--label", "warm,funny,dull", "--json")
    assert json.loads(totune(*words))["metrics"]["exact-match"] == 1


def test_thresholds_are_read_from_the_description(label_model: Path, new_file: Path):
    description = label_model / "totune.json"
    before = description.read_text(encoding="utf-8")
    about = json.loads(before)
    about["task"]["thresholds"] = [0.5, 0.999, 0.5]
    del about["sha256"]  # the change is meant
    description.write_text(json.dumps(about), encoding="utf-8")
    try:
        rows = list(csv.DictReader(totune("predict", label_model, new_file).splitlines()))
    finally:
        description.write_text(before, encoding="utf-8")
    assert rows[0]["prediction"] == "warm"
