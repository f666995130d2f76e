"""`totune compare --search`: options searched on dev, once, and on from where it was killed."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.commands import Ended
from tests.end_to_end.conftest import Run, Start

from totune.io import read_checked_json

EPOCHS = (
    "--num-train-epochs",
    6,
    "--set",
    "feature-extraction.patience=6",
    "--set",
    "feature-extraction.solver=gradient",
)


def compare(data: Path, out: Path, *more: object, trials: int = 3) -> tuple[object, ...]:
    """A command of one seed over two strategies, each with epochs or trials of little work."""
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    chosen = ("--strategies", "tf-idf,feature-extraction", "--search", trials, "--seeds", 1)
    steps = ("--precision", "fp32", "--per-device-train-batch-size", 8)
    return ("compare", *where, *chosen, *steps, *EPOCHS, *more)


def searches(study: Path) -> dict[str, dict[str, Any]]:
    """The records of the searches, without what a clock measured."""
    found = {}
    for path in sorted((study / "search").glob("*.json")):
        record = read_checked_json(path)
        for trial in record["trials"]:
            del trial["seconds"]
        found[record["strategy"]] = record
    return found


def trained(ended: Ended) -> list[str]:
    """The trials that a command has told of: "tf-idf: trial 1"."""
    told, strategy = [], ""
    for line in ended.err.splitlines():
        if found := re.match(r"search \d+/\d+: (.+)|(trial \d+)", line):
            strategy = found[1] or strategy
            told += [f"{strategy}: {found[2]}"] if found[2] else []
    return told


def configurations(study: Path) -> dict[str, dict[str, Any]]:
    """The configuration of every run of the study, by strategy."""
    info = json.loads((study / "study.json").read_text(encoding="utf-8"))
    paths = [study / "runs" / fingerprint / "record.json" for fingerprint in info["runs"]]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {record["strategy"]: record["config"] for record in records}


@pytest.fixture(scope="module")
def searched_study(totune: Run, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose searches nothing disturbed."""
    study = tmp_path_factory.mktemp("whole") / "study"
    ended = totune(*compare(data, study))
    assert ended.code == 0, ended.err
    assert len(trained(ended)) == 6
    return study


def test_winners_run_and_are_scored_under_the_names_of_their_strategies(
    searched_study: Path,
) -> None:
    found, runs = searches(searched_study), configurations(searched_study)
    assert set(found) == set(runs) == {"tf-idf", "feature-extraction"}
    for label, record in found.items():
        assert len(record["trials"]) == 3
        won = record["trials"][record["best"]]["options"]
        for name, value in won.items():
            part = "head" if name.startswith("head.") else "strategy"
            assert runs[label][part]["options"][name.removeprefix("head.")] == value
    assert runs["feature-extraction"]["strategy"]["options"]["num_train_epochs"] == 6
    info = json.loads((searched_study / "study.json").read_text(encoding="utf-8"))
    assert info["settings"]["search_trials"] == 3


def test_the_same_command_searches_nothing_again_and_a_larger_one_goes_on(
    totune: Run, data: Path, searched_study: Path
) -> None:
    before = searches(searched_study)
    again = totune(*compare(data, searched_study))
    assert again.code == 0, again.err
    assert trained(again) == []
    assert "run 1/" not in again.err
    assert searches(searched_study) == before
    larger = totune(*compare(data, searched_study, trials=4))
    assert trained(larger) == ["tf-idf: trial 4", "feature-extraction: trial 4"]
    assert {label: r["trials"][:3] for label, r in searches(searched_study).items()} == {
        label: record["trials"] for label, record in before.items()
    }


def test_a_killed_search_goes_on_and_ends_with_the_same_trials(
    start: Start, totune: Run, data: Path, searched_study: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    running = start(*compare(data, study, trials=4))
    state = study / "search" / "checkpoints"

    def in_trial_3() -> bool:
        told = running.errors().partition("search 2/2: feature-extraction")[2]
        return "trial 2/" in told and any(state.glob("*.pt"))

    running.wait_for(in_trial_3)
    running.send(signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    ended = totune(*compare(data, study, trials=4))
    assert ended.code == 0, ended.err
    assert trained(ended) == [f"feature-extraction: trial {number}" for number in (3, 4)]
    assert "continuing after epoch" in ended.err
    alone = totune(*compare(data, searched_study, trials=4))
    assert alone.code == 0, alone.err
    assert searches(study) == searches(searched_study)
    assert not list(state.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--search", "abc"), "--search 'abc' is no budget"),
        (("--search", "0"), "--search '0' leaves nothing to try"),
        (("--search", "0s"), "--search 0.0 is out of range: it must be above 0"),
        (("--search-storage", "sqlite:///x.db"), "of no use without a search"),
        (
            ("--search", 2, "--search-storage", "postgresql+psycopg2://a:secret@localhost/b"),
            "needs a driver that is not installed",
        ),
    ],
)
def test_what_cannot_be_searched_is_told_in_one_message(
    totune: Run, tmp_path: Path, options: tuple[object, ...], message: str
) -> None:
    ended = totune("compare", tmp_path / "missing.csv", "--out", tmp_path / "study", *options)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert "secret" not in ended.err
