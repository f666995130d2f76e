"""A study that trackers are told of, whoever does its runs."""

import json
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.end_to_end import commands
from tests.end_to_end.conftest import Run

from totune.api import compare

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_numbers_of_a_study_lie_in_its_folder(data: Path, tmp_path: Path, jobs: int) -> None:
    commands.start_server()
    compare(
        data / "reviews.csv",
        out=tmp_path,
        model=str(data / "encoder"),
        strategies=["tf-idf", "feature-extraction", "last-2"],
        options={"num_train_epochs": 2},
        folds=1,
        seeds=1,
        jobs=jobs,
        track=["tensorboard"],
    )
    study = json.loads((tmp_path / "study.json").read_text())
    assert "track" not in study["settings"]
    folders = sorted((tmp_path / "tracking/tensorboard").iterdir())
    assert len(folders) == len(study["runs"]) == 3
    for fingerprint in study["runs"]:
        record = json.loads((tmp_path / f"runs/{fingerprint}/record.json").read_text())
        name = f"{record['strategy']} seed 0 {fingerprint[:8]}"
        events = EventAccumulator(str(tmp_path / "tracking/tensorboard" / name))
        events.Reload()
        found = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
        told = [epoch["dev"]["accuracy"] for epoch in record["epochs"]]
        assert [e.value for e in found.get("dev/accuracy", [])] == pytest.approx(told)
        assert [e.step for e in found.get("dev/accuracy", [])] == list(range(1, len(told) + 1))
        for metric, value in record["test"].items():
            assert [e.value for e in found[f"test/{metric}"]] == pytest.approx([value])


def test_a_tracker_that_there_is_not_is_told_before_anything_is_loaded(
    totune: Run, tmp_path: Path
) -> None:
    ended = totune("compare", tmp_path / "no.csv", "--track", "tensorboard,mlflw")
    assert ended.code == 2
    assert "no tracker called 'mlflw'" in ended.err
    assert "'mlflow'" in ended.err
