"""`totune compare`, `totune train` and `totune report`: what they pass on and what they print."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from totune import api
from totune.cli.app import app
from totune.report.table import Column, Row, Table, word


class FakeStudy:
    advice = SimpleNamespace(
        headline="Fine-tune.",
        reasons=("It is better.",),
        costs=("It is slow.",),
        effort=("None was searched.",),
        caveats=("Few.",),
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.best = folder / "best"
        self.reports = 0

    def table(self) -> Table:
        columns = (Column("Strategy", numeric=False), Column("Accuracy"))
        row = Row((word("last-2 [x]"), word("85.1", "84 to 86")), mark="recommended")
        return Table("Comparison", columns, (row,), ("A note.",))

    def report(self, texts: bool = True) -> None:
        self.reports += 1
        self.texts = texts

    def to_json(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "score": float("nan")}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def compare(data: str, **settings: Any) -> FakeStudy:
        made.append({"data": data, **settings})
        settings["progress"].say("Reading.")
        baseline(tmp_path / "best")
        return FakeStudy(tmp_path)

    def train(data: str, strategy: str, **settings: Any) -> SimpleNamespace:
        made.append({"data": data, "strategy": strategy, **settings})
        scores = {"accuracy": 0.5, "f1": 0.25}
        baseline(settings["out"])
        return SimpleNamespace(about={"metrics": {"dev": scores, "test": scores}})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "compare", compare)
    monkeypatch.setattr(api, "train", train)
    return made


def baseline(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "totune.json").write_text('{"totune": "0.1.0", "kind": "baseline"}')


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def test_settings_are_passed_on(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.argv", ["/bin/totune", "compare", "my file.csv"])
    run("compare", "x.csv", "--seeds", "3,7", "--budget", "2m", "--out", tmp_path, "--metric", "f1")
    (call,) = calls
    expected = {"data": "x.csv", "seeds": [3, 7], "budget": 120, "out": tmp_path, "metric": "f1"}
    assert expected.items() <= call.items()
    assert call["command"] == "totune compare 'my file.csv'"


def test_a_person_gets_the_table_the_answer_and_the_places(
    calls: list[dict[str, Any]], tmp_path: Path
):
    result = run("compare", "x.csv")
    for expected in ("last-2 [x]", "(recommended)", "84 to 86", "A note.", "Fine-tune."):
        assert expected in result.stdout
    assert "- It is better.\n- It is slow.\n- None was searched.\n- But: Few.\n" in result.stdout
    assert f"Report: {tmp_path / 'report.html'}\n" in result.stdout
    assert f"Model:  {tmp_path / 'best'} (totune predict" in result.stdout
    assert f'Only totune loads it, in Python as totune.load("{tmp_path / "best"}")' in result.stdout
    assert result.stderr == "Reading.\n"


def test_json_is_all_there_is_on_standard_output(calls: list[dict[str, Any]], tmp_path: Path):
    result = run("compare", "x.csv", "--json", "--quiet")
    assert json.loads(result.stdout) == {"folder": str(tmp_path), "score": None}
    assert result.stderr == ""


def test_train_passes_its_strategy_and_shows_the_scores(calls: list[dict[str, Any]]):
    result = run("train", "x.csv", "--strategy", "last-2", "--seed", "4", "--out", "m")
    assert {"strategy": "last-2", "seed": 4, "out": Path("m")}.items() <= calls[0].items()
    assert "50.0" in result.stdout
    assert "Model:  m (totune predict m INPUT)" in result.stdout


def test_train_as_json(calls: list[dict[str, Any]]):
    facts = json.loads(run("train", "x.csv", "--json").stdout)
    assert (facts["model"], facts["strategy"], facts["seed"]) == ("model", "fine-tuning", 0)
    assert facts["metrics"]["test"]["f1"] == 0.25


def test_report_is_written_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    made: list[FakeStudy] = []

    def study(folder: Path) -> FakeStudy:
        made.append(FakeStudy(folder))
        return made[-1]

    monkeypatch.setattr("totune.study.study.Study", study)
    assert "Fine-tune." in run("report", tmp_path).stdout
    assert json.loads(run("report", tmp_path, "--json").stdout)["folder"] == str(tmp_path)
    assert [(one.folder, one.reports) for one in made] == [(tmp_path, 1), (tmp_path, 1)]
