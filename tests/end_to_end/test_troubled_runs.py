"""Runs that fail, baselines that read no text, and runs that a budget leaves no time for."""

import json
from pathlib import Path

from tests.end_to_end.conftest import Run

WILD = "fine-tuning.learning_rate=1e30"


def test_a_failed_run_is_counted_and_the_others_go_on(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", study)
    chosen = ("--strategies", "fine-tuning,tf-idf", "--seeds", 2, "--set", WILD)
    ended = totune("compare", *where, *chosen, "--json")
    assert ended.code == 0, ended.err
    runs = [(run["strategy"], run["seed"], run["status"]) for run in ended.json["runs"]]
    assert runs == [
        ("fine-tuning", 0, "failed"),
        ("fine-tuning", 1, "failed"),
        ("tf-idf", 0, "finished"),
        ("tf-idf", 1, "finished"),
    ]
    assert "warning: fine-tuning seed 0 failed: the loss on train became nan" in ended.err
    standings = {one["strategy"]: one for one in ended.json["advice"]["standings"]}
    assert (standings["fine-tuning"]["runs"], standings["fine-tuning"]["failed"]) == (2, 2)
    assert any("fine-tuning" in caveat for caveat in ended.json["advice"]["caveats"])
    assert ended.json["advice"]["best"] == "tf-idf"
    for name in ("report.md", "report.html"):
        text = (study / name).read_text(encoding="utf-8")
        assert "the loss on train became nan" in text, name
    assert not list(study.glob("runs/*/checkpoint.pt"))


def test_majority_has_its_row_and_is_no_trouble(totune: Run, data: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", study)
    chosen = ("--strategies", "majority,tf-idf", "--seeds", 1)
    ended = totune("compare", *where, *chosen, "--json")
    assert ended.code == 0, ended.err
    assert "warning: majority" not in ended.err
    standings = {one["strategy"]: one for one in ended.json["advice"]["standings"]}
    found = standings["majority"]
    assert (found["degenerate"], found["seeds"]) == (0, 1)
    assert 0 < found["mean"] < 1
    assert ended.json["advice"]["recommended"] != "majority"
    assert "| majority" in (study / "report.md").read_text(encoding="utf-8")


def test_a_study_without_a_finished_run_ends_with_1(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", study)
    ended = totune("compare", *where, "--strategies", "fine-tuning", "--seeds", 2, "--set", WILD)
    assert ended.code == 1
    assert ended.out == ""
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: No run finished. The first one's message: the loss on train")
    assert "smaller learning_rate" in last
    assert "Traceback" not in ended.err
    statuses = [
        json.loads(path.read_text(encoding="utf-8"))["status"]
        for path in study.glob("runs/*/record.json")
    ]
    assert statuses == ["failed", "failed"]
    once = totune("train", *where[:-1], tmp_path / "one", "--set", WILD)
    assert once.code == 1
    assert once.err.splitlines()[-1].startswith("error: The run failed: the loss on train")


def test_a_budget_skips_runs_and_the_same_command_without_it_runs_them(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    """After the first run, of some tenths of a second, there is no time for another like it."""
    study = tmp_path / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", study)
    chosen = ("--strategies", "fine-tuning", "--seeds", 2, "--per-device-train-batch-size", 4)
    chosen += ("--num-train-epochs", 3, "--learning-rate", "1e-3", "--fraction", "0.5")
    short = totune("compare", *where, *chosen, "--json", "--budget", "0.3")
    assert short.code == 0, short.err
    assert [run["seed"] for run in short.json["runs"]] == [0]
    told = next(line for line in short.err.splitlines() if "used up" in line)
    assert "not run: fine-tuning seed 1." in told
    rest = totune("compare", *where, *chosen, "--json")
    assert rest.code == 0, rest.err
    assert [line for line in rest.err.splitlines() if line.startswith("run ")] == [
        "run 2/2: fine-tuning, seed 1 (under 1 min left)"
    ]
    assert [run["seed"] for run in rest.json["runs"]] == [0, 1]


def test_a_budget_of_nothing_runs_nothing(totune: Run, data: Path, tmp_path: Path) -> None:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", tmp_path / "study")
    ended = totune("compare", *where, "--strategies", "tf-idf", "--budget", "0")
    assert ended.code == 1
    assert "The budget of 0 s left no time for any run." in ended.err.splitlines()[-1]
