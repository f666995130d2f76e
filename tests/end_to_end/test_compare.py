"""`totune compare`: the main job, again with more seeds, and every way of asking wrongly."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.commands import ROOT, Ended
from tests.end_to_end.conftest import Run
from tests.tiny_data import save_encoder, write_reviews, write_table

import totune
from totune.runs.config import RunConfig
from totune.runs.records import EpochRecord, RunRecord
from totune.runs.settings import DEFAULT_STRATEGIES

CHEAP = ("--strategies", "tf-idf,feature-extraction", "--num-train-epochs", "3")


def records(study: Path) -> dict[Path, int]:
    """Every record of a study and when it was written."""
    return {path: path.stat().st_mtime_ns for path in study.glob("runs/*/record.json")}


def began(ended: Ended) -> list[str]:
    """The runs that a command began: "tf-idf, seed 0"."""
    lines = [line for line in ended.err.splitlines() if line.startswith("run ")]
    return [line.split(": ")[1].partition(" (")[0] for line in lines]


def read(study: Path, name: str) -> Any:
    return json.loads((study / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def first(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A study of two seeds, made as a person would: by a Python that starts for it.

    It can import no optuna, which only a search needs.
    """
    out = tmp_path_factory.mktemp("first") / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    without = tmp_path_factory.mktemp("without")
    (without / "optuna.py").write_text("raise ImportError('only a search needs optuna')")
    path = os.pathsep.join([str(without), str(ROOT / "src"), str(ROOT)])
    words = ["compare", *map(str, where), *CHEAP, "--folds", "1", "--seeds", "2", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "totune", *words],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return out, Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def compared_study(first: tuple[Path, Ended], tmp_path: Path) -> Path:
    """A copy of that study, with the times of its files."""
    return Path(shutil.copytree(first[0], tmp_path / "study"))


class Noting(totune.Callback):
    """Notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def on_run_begin(self, config: RunConfig) -> None:
        self.calls.append(("begin", config.label))

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self.calls.append((f"epoch {epoch.epoch}", config.label))

    def on_run_end(self, record: RunRecord) -> None:
        self.calls.append(("end", record.strategy))


@pytest.mark.parametrize("jobs", [1, 2])
def test_callbacks_are_called_wherever_a_run_takes_place(
    data: Path, tmp_path: Path, jobs: int
) -> None:
    noting = Noting()
    totune.compare(
        data / "reviews.csv",
        model=str(data / "encoder"),
        out=tmp_path / "study",
        strategies=["tf-idf", "last-1"],
        folds=1,
        seeds=1,
        options={"num_train_epochs": 2},
        jobs=jobs,
        callbacks=[noting],
    )
    of_last = [what for what, label in noting.calls if label == "last-1"]
    assert of_last == ["begin", "epoch 1", "epoch 2", "end"]
    assert [what for what, label in noting.calls if label == "tf-idf"] == ["begin", "end"]


def test_what_reads_a_study_needs_no_optuna(first: tuple[Path, Ended]) -> None:
    """Here importing it fails."""
    study, ended = first
    assert ended.code == 0, ended.err
    assert "optuna" not in ended.err
    assert (study / "report.html").is_file()


def test_the_main_job_leaves_records_a_report_and_a_model(first: tuple[Path, Ended]) -> None:
    study, ended = first
    assert ended.code == 0, ended.err
    assert began(ended) == [
        "tf-idf, seed 0",
        "feature-extraction, seed 0",
        "tf-idf, seed 1",
        "feature-extraction, seed 1",
    ]
    assert len(ended.out.splitlines()) == 1
    answer = ended.json
    assert answer["metric"] == "accuracy"
    assert answer["advice"]["headline"]
    assert [(run["strategy"], run["seed"], run["status"]) for run in answer["runs"]] == [
        ("tf-idf", 0, "finished"),
        ("tf-idf", 1, "finished"),
        ("feature-extraction", 0, "finished"),
        ("feature-extraction", 1, "finished"),
    ]
    assert Path(answer["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert answer["advice"]["headline"] in (study / "report.md").read_text(encoding="utf-8")
    assert read(study, "best/totune.json")["strategy"] == answer["advice"]["provisional"]
    assert len(records(study)) == 4
    info = read(study, "study.json")
    assert info["data"]["rows"] == {"train": 160, "dev": 20, "test": 20}
    assert sorted(info["runs"]) == sorted(path.parent.name for path in records(study))


def test_the_same_command_runs_nothing(totune: Run, data: Path, compared_study: Path) -> None:
    before = records(compared_study)
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", compared_study)
    ended = totune("compare", *where, *CHEAP, "--seeds", 2, "--json")
    assert ended.code == 0, ended.err
    assert began(ended) == []
    assert records(compared_study) == before
    assert len(ended.json["runs"]) == 4
    assert (compared_study / "best" / "totune.json").is_file()


def test_more_seeds_run_only_what_is_missing(totune: Run, data: Path, compared_study: Path) -> None:
    before = records(compared_study)
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", compared_study)
    ended = totune("compare", *where, *CHEAP, "--seeds", 3, "--json")
    assert ended.code == 0, ended.err
    assert began(ended) == ["tf-idf, seed 2", "feature-extraction, seed 2"]
    after = records(compared_study)
    assert len(after) == 6
    assert {path: after[path] for path in before} == before


def test_fewer_seeds_still_find_a_best_model(totune: Run, data: Path, compared_study: Path) -> None:
    """Weights of a run that was not the best are gone; it is run again where it becomes it."""
    kept = read(next(compared_study.glob("runs/*/weights")).parent, "record.json")
    strategy, other = kept["strategy"], 1 - kept["seed"]
    scores = {path: read(path.parent, path.name)["test"] for path in records(compared_study)}
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", compared_study)
    chosen = ("--strategies", strategy, "--seeds", f"{other},", "--json")
    epochs = CHEAP[2:] if strategy == "feature-extraction" else ()
    ended = totune("compare", *where, *chosen, *epochs)
    assert ended.code == 0, ended.err
    assert f"{strategy} seed {other} runs again" in ended.err
    assert [(run["strategy"], run["seed"]) for run in ended.json["runs"]] == [(strategy, other)]
    assert read(compared_study, "best/totune.json")["seed"] == other
    assert {
        path: read(path.parent, path.name)["test"] for path in records(compared_study)
    } == scores


def test_other_settings_are_other_runs(totune: Run, data: Path, compared_study: Path) -> None:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", compared_study)
    rate = ("--learning-rate", "0.02")
    ended = totune("compare", *where, *CHEAP, *rate, "--seeds", 2, "--json")
    assert ended.code == 0, ended.err
    assert began(ended) == ["feature-extraction, seed 0", "feature-extraction, seed 1"]
    assert len(records(compared_study)) == 6
    assert [run["seed"] for run in ended.json["runs"]] == [0, 1, 0, 1]


def test_the_report_is_drawn_again_from_records(totune: Run, compared_study: Path) -> None:
    text = (compared_study / "report.md").read_text(encoding="utf-8")
    for name in ("report.md", "report.html"):
        (compared_study / name).unlink()
    ended = totune("report", compared_study, "--json")
    assert ended.code == 0, ended.err
    assert (compared_study / "report.md").read_text(encoding="utf-8") == text
    assert (compared_study / "report.html").stat().st_size > 1000
    assert ended.json["best"] == str(compared_study / "best")


def fails(ended: Ended, *parts: str) -> None:
    """Exit code 2 with one message that holds `parts`, and nothing else."""
    assert ended.code == 2, ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert ended.err.count("error: ") == 1
    message = ended.err.partition("error: ")[2]
    for part in parts:
        assert part in message


def test_another_dataset_needs_another_folder(
    totune: Run, data: Path, compared_study: Path, tmp_path: Path
) -> None:
    other = write_reviews(tmp_path / "other.csv", seed=1)
    before = (compared_study / "study.json").read_bytes()
    ended = totune("compare", other, "--model", data / "encoder", "--out", compared_study, *CHEAP)
    fails(ended, "holds a study of other data (reviews", "--out")
    assert (compared_study / "study.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--strategies", "last-two"), ("'last-two'", "Did you mean 'last-k'?")),
        (("--strategies", "last-9"), ("k=9", "1..4")),
        (("--set", "learning_rat=1"), ("'learning_rat'", "Did you mean 'learning_rate'?")),
        (("--learning-rate", "-1"), ("--learning-rate -1.0", "greater than 0")),
        (("--metric", "acuracy"), ("'acuracy'", "Did you mean 'accuracy'?")),
        (("--label", "lable"), ("'lable'", "Did you mean 'label'?")),
    ],
)
def test_a_wrong_setting_gets_one_message(
    totune: Run, data: Path, tmp_path: Path, options: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", tmp_path / "study")
    fails(totune("compare", *where, *options), *parts)
    assert not (tmp_path / "study").exists()


def test_all_faults_of_the_settings_are_told_together(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", tmp_path / "study")
    wrong = ("--strategies", "tfidf", "--fraction", "0", "--precision", "fp8", "--max-length", "1")
    fails(totune("compare", *where, *wrong), "'tfidf'", "--fraction 0.0", "fp8", "--max-length 1")


def test_unusable_input_gets_one_message(totune: Run, data: Path, tmp_path: Path) -> None:
    encoder = ("--model", data / "encoder", "--out", tmp_path / "study")
    empty = tmp_path / "empty.csv"
    empty.touch()
    fails(totune("compare", empty, *encoder), str(empty), "empty")
    fails(totune("compare", data / "review.csv", *encoder), "review.csv", "reviews.csv")
    one = write_table(tmp_path / "one.csv", ("text", "label"), [(f"w{i}", "a") for i in range(40)])
    fails(totune("compare", one, *encoder), "one.csv", "'a'")
    fails(totune("compare", data / "reviews.csv", "--out", empty), f"{empty} is a file")


def test_an_unreadable_encoder_gets_one_message(totune: Run, data: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(data / "encoder", tmp_path / "damaged"))
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    where = (data / "reviews.csv", "--out", tmp_path / "study", "--model")
    fails(totune("compare", *where, damaged), str(damaged), "cannot be read")
    (tmp_path / "nothing").mkdir()
    fails(totune("compare", *where, tmp_path / "nothing"), "config.json")
    assert not (tmp_path / "study").exists()


def test_what_was_not_named_and_does_not_fit_is_left_out(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    """Of an encoder whose layers share their weights, no two layers can train alone."""
    encoder, out = tmp_path / "encoder", tmp_path / "study"
    save_encoder(encoder, name="albert-one-group")
    where = ("compare", data / "reviews.csv", "--model", encoder, "--out", out)
    few = ("--seeds", "1", "--num-train-epochs", "1", "--fraction", "0.2")
    ended = totune(*where, *few, "--set", "stack_epochs=1")
    assert ended.code == 0, ended.err
    others = [name for name in DEFAULT_STRATEGIES if name != "last-2"]
    assert began(ended) == [f"{name}, seed 0" for name in others]
    (warning,) = [w for w in read(out, "study.json")["data"]["warnings"] if "left out" in w]
    assert warning.startswith("last-2 is left out: last-k: k=2 cuts between layers")
    ended = totune(*where, *few, "--strategies", "tf-idf,last-2")
    assert ended.code == 2
    assert "share their weights" in ended.err


def test_a_mistake_in_an_option_leaves_nothing_out(totune: Run, data: Path, tmp_path: Path) -> None:
    where = ("compare", data / "reviews.csv", "--model", data / "encoder", "--out", tmp_path / "s")
    ended = totune(*where, "--seeds", "1", "--set", 'lora.target_modules=["qeury"]')
    assert ended.code == 2
    assert "no module of this bert encoder is called 'qeury'. Did you mean 'query'?" in ended.err
    assert began(ended) == []


def test_what_takes_places_of_its_own_is_told_before_a_run(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    """The tiny encoder has 40 positions; inputs are cut to the encoder's limit, not to the rest."""
    prefix = '{"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 30}'
    where = ("compare", data / "reviews.csv", "--model", data / "encoder", "--out", tmp_path / "s")
    ended = totune(*where, "--strategies", "peft", "--set", f"peft.config={prefix}")
    assert ended.code == 2
    assert "room for 10 word pieces, and inputs may have 40. Use --max-length 10." in ended.err
    assert began(ended) == []


def test_what_a_later_phase_spoilt_is_neither_kept_nor_counted(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    """Phase 2 at a rate that ruins the model: the best epoch is of the stack, and so the cost."""
    folder, out = tmp_path / "data", tmp_path / "study"
    folder.mkdir()
    write_reviews(folder / "train.csv")
    options = ("learning_rate=1", "stack_learning_rate=0.01", "stack_epochs=6")
    where = ("compare", folder, "--model", data / "encoder", "--out", out)
    only = ("--strategies", "stack-and-finetune", "--seeds", "1", "--precision", "fp32")
    only += ("--num-train-epochs", "1")
    sets = [word for option in options for word in ("--set", option)]
    ended = totune(*where, *only, *sets)
    assert ended.code == 0, ended.err
    (record,) = (json.loads(path.read_text("utf-8")) for path in out.glob("runs/*/record.json"))
    stack = [epoch["epoch"] for epoch in record["epochs"] if epoch["phase"] == "stack"]
    assert record["best_epoch"] in stack
    costs = record["costs"]
    assert costs["storage_bytes"] < costs["trainable_parameters"]  # four bytes each, if all counted
    ended = totune("evaluate", out / "best", folder, "--json")
    assert ended.json["metrics"] == pytest.approx(record["test"])
