"""How long a study takes: what is said before training, beside runs, and of a budget."""

from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews
from tests.unit.runs.samples import context_of, failed, record_of, runs_of

import totune
from totune.errors import RunError
from totune.progress import Progress
from totune.registry import build
from totune.runs import study_time
from totune.runs.context import Context
from totune.runs.prepare import prepare
from totune.runs.run import Run, configure
from totune.runs.runner import Runner
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.runs.study_time import StudyTime, _Speed, about, expect_time
from totune.study.study import Study

RUNS = runs_of(*[(name, seed) for seed in (0, 1, 2) for name in ("tf-idf", "last-2", "lora")])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "under 1 min"),
        (59, "under 1 min"),
        (61, "about 1 min"),
        (12 * 60, "about 12 min"),
        (23 * 60, "about 25 min"),
        (59 * 60, "about 1 h"),
        (5400, "about 1.5 h"),
        (100_000, "about 28 h"),
    ],
)
def test_times_are_round(seconds: float, text: str) -> None:
    assert about(seconds) == text


def test_a_study_is_described_by_its_longest_strategies() -> None:
    time = StudyTime({"last-2": 60.0, "lora": 140.0, "feature-extraction": 1.0}, features=20.0)
    assert time.describe(RUNS) == (
        "About 10 min in all: 9 runs (lora 7 min, last-2 3 min), tf-idf not counted."
    )
    more = [*RUNS, *runs_of(("feature-extraction", 0))]
    assert time.describe(more, search=600, at_most=True) == (
        "About 20 min in all, at most: 10 runs (search 10 min, lora 7 min, last-2 3 min, the rest "
        "under 1 min), tf-idf not counted."
    )
    assert StudyTime({"last-2": 5.0}).describe(RUNS[1:2]) == "Under 1 min in all: 1 run."


def test_runs_at_once_share_the_machine() -> None:
    alone, together = (StudyTime({"lora": 60.0}, at_once=count) for count in (1, 2))
    assert together.of_run("lora") == 120.0
    assert together.total(RUNS[2:3]) == alone.total(RUNS[2:3]) == 60.0


def test_finished_runs_correct_what_is_expected() -> None:
    time = StudyTime({"last-2": 60.0, "lora": 120.0}, scope=" of this round")
    assert time.surely("lora") == 0.0
    assert time.left(RUNS) == " (about 9 min left of this round)"  # tf-idf counts nothing yet
    time.note(failed("tf-idf"), 1.0)
    assert time.left([run for run in RUNS if run.label == "tf-idf"]) == ""
    time.note(record_of("tf-idf", 0), 1.0)
    assert time.surely("lora") == 60.0
    assert time.left(RUNS[1:]) == " (about 9 min left of this round)"
    time.note(record_of("lora", 0), 240.0)
    time.note(record_of("lora", 0), 240.0)  # as each round does
    assert time.of_run("lora") == 240.0
    assert time.of_run("last-2") == 90.0  # (240 + 120) / (120 + 120) of what was expected


def test_a_budget_leaves_out_what_is_beyond_it() -> None:
    time = StudyTime({"last-2": 60.0, "lora": 120.0})
    assert time.beyond(RUNS, 600.0) == ""
    assert time.beyond(RUNS, 400.0) == "last-2 (1 of 3 runs), lora (1 of 3 runs)"
    assert time.beyond(RUNS, 100.0) == "lora (3 of 3 runs), last-2 (2 of 3 runs)"


def test_the_time_left_stands_beside_runs_and_no_run_begins_that_would_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "execute", lambda run, *_: record_of(run.label, run.seed))
    told, time = Recorder(), StudyTime({"last-2": 600.0, "lora": 3600.0})
    runner = Runner(context_of(told), Store(tmp_path), time=time)
    records = runner.execute(RUNS[:3], budget=1000.0)
    left = "(about 1.2 h left)"
    assert told.said == [f"run 1/3: tf-idf, seed 0 {left}", f"run 2/3: last-2, seed 0 {left}"]
    assert [record.strategy for record in records] == ["tf-idf", "last-2"]
    assert "not run: lora seed 0" in told.warned[0]


def context(place: Path, strategies: list[str]) -> tuple[Context, list[Run]]:
    settings = {"model": str(save_encoder(place / "encoder")), "strategies": strategies, "folds": 1}
    made = build(Settings, settings | {"cache_dir": place / "cache"}, "compare")
    found = prepare(write_reviews(place / "reviews.csv", 60), made, Progress())
    return found, configure(made.candidates(), [0, 1], found)


def test_what_runs_take_follows_from_their_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_time, "_measure", lambda *_: _Speed(1.0, 0.0, 1.0))
    shared, runs = context(tmp_path, ["tf-idf", "feature-extraction", "last-1", "fine-tuning"])
    time = expect_time(runs, shared)
    assert time is not None
    frozen, last, tuned = (
        time.of_run(name) for name in ("feature-extraction", "last-1", "fine-tuning")
    )
    assert time.of_run("tf-idf") is None
    assert frozen == 0.0  # solved, on features that all runs share
    assert last is not None
    assert tuned is not None
    assert last < tuned
    again = expect_time([*runs, *runs], shared)
    assert again is not None
    assert again.total([]) == time.total([])  # of features: computed once


@pytest.mark.usefixtures("cache")
def test_steps_are_timed_and_a_study_says_so_before_and_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "report", lambda _: None)
    monkeypatch.setattr(study_time, "about", lambda *_: "about some time")
    told = Recorder()
    totune.compare(
        write_reviews(tmp_path / "reviews.csv", 60),
        out=tmp_path / "study",
        model=str(save_encoder(tmp_path / "encoder")),
        strategies=["last-1"],
        options={"num_train_epochs": 1},
        seeds=2,
        folds=1,
        progress=told,
        budget=1000.0,
    )
    said = [line for line in told.said if "some time" in line]
    assert said == [
        "About some time in all: 2 runs.",
        "run 1/2: last-1, seed 0 (about some time left)",
        "run 2/2: last-1, seed 1 (about some time left)",
    ]


def test_nothing_is_said_where_a_step_fails_or_no_encoder_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RunError("it does not fit")

    shared, runs = context(tmp_path, ["tf-idf", "last-1"])
    assert expect_time(runs[:1], shared) is None
    monkeypatch.setattr(study_time, "_measure", fail)
    assert expect_time(runs, shared) is None
