"""What trackers are told, read back with TensorBoard's own reader, and what they may not do."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.recorder import Recorder
from tests.unit.runs.samples import config_of, failed, record_of

from totune.errors import ConfigError
from totune.runs.records import EpochRecord
from totune.tracking import Tracking, callback, check_trackers
from totune.tracking.base import TrackedName, TrackedRun, of_record, parameters
from totune.training.devices import Devices

Calls = list[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _processes() -> None:
    Devices()  # what accelerate's trackers ask who they are


def epochs(count: int) -> list[EpochRecord]:
    return [
        EpochRecord("all", n, {"loss": 1 / n}, {"accuracy": n / 10, "loss": 2 / n}, 0.5)
        for n in range(1, count + 1)
    ]


def tell(tracking: Tracking, told: Sequence[EpochRecord], label: str = "last-2") -> None:
    config = config_of(label, settings={"precision": "fp32"})
    tracking.on_run_begin(config)
    for epoch in told:
        tracking.on_epoch_end(config, epoch)


def end(tracking: Tracking, told: list[EpochRecord], label: str = "last-2") -> None:
    fingerprint = config_of(label, settings={"precision": "fp32"}).fingerprint
    record = record_of(label, test={"accuracy": 0.75}, epochs=told)
    tracking.on_run_end(dataclasses.replace(record, fingerprint=fingerprint))


def read(folder: Path, label: str) -> dict[str, list[tuple[int, float]]]:
    """Every number by name, as (step, value)."""
    [found] = (folder / "tracking/tensorboard").glob(f"{label} seed 0 *")
    events = EventAccumulator(str(found))
    events.Reload()
    tags = events.Tags()["scalars"]
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in tags}


def test_event_files_hold_the_numbers_of_the_record(tmp_path: Path) -> None:
    told, tracking = epochs(3), Tracking(["tensorboard"], tmp_path, Recorder())
    tell(tracking, told)
    end(tracking, told)
    found = read(tmp_path, "last-2")
    for split in ("train", "dev"):
        for name in getattr(told[0], split):
            expected = [getattr(epoch, split)[name] for epoch in told]
            assert [step for step, _ in found[f"{split}/{name}"]] == [1, 2, 3]
            assert [v for _, v in found[f"{split}/{name}"]] == pytest.approx(expected)
    assert found["test/accuracy"] == [(3, 0.75)]
    assert found["cost/train_seconds"] == [(3, 1.5)]
    assert len(found) == 3 + 1 + 1 + 2 + 8  # epochs and their seconds, test, best dev, costs
    [written] = (tmp_path / "tracking/tensorboard").glob("*/*/hparams.yml")
    assert "settings.precision: fp32" in written.read_text()


def test_a_run_that_continues_is_told_once(tmp_path: Path) -> None:
    """It tells its old epochs again, into a folder of its own."""
    told = epochs(3)
    tell(Tracking(["tensorboard"], tmp_path, Recorder()), told[:2])  # and is killed
    again = Tracking(["tensorboard"], tmp_path, Recorder())
    tell(again, told)
    end(again, told)
    assert [step for step, _ in read(tmp_path, "last-2")["dev/loss"]] == [1, 2, 3]


def test_runs_that_go_on_at_once_are_kept_apart(tmp_path: Path) -> None:
    told, tracking = epochs(2), Tracking(["tensorboard"], tmp_path, Recorder())
    tell(tracking, told)
    tell(tracking, told[:1], "tf-idf/word")
    end(tracking, told)
    end(tracking, told[:1], "tf-idf/word")
    assert len(read(tmp_path, "last-2")["dev/loss"]) == 2
    assert len(read(tmp_path, "tf-idf-word")["dev/loss"]) == 1


class KeptRun(TrackedRun):
    """Keeps what it is told, and breaks where it is told to."""

    calls: ClassVar[Calls] = []
    breaks = ""

    def __init__(self, run: TrackedName, parameters: Mapping[str, Any]) -> None:
        self._add("begin", run.title)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._add("log", step)

    def end(self, error: str | None) -> None:
        self._add("end", error)

    def _add(self, *call: Any) -> None:
        if call[0] == self.breaks:
            raise ConnectionError("nobody answers")
        self.calls.append(call)


class FragileRun(KeptRun):
    calls: ClassVar[Calls] = []


@pytest.fixture
def kept_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (KeptRun, FragileRun):
        monkeypatch.setattr(kind, "calls", [])
    kinds = {"tensorboard": KeptRun, "mlflow": FragileRun}
    monkeypatch.setattr(callback, "TRACKERS", kinds)


@pytest.mark.parametrize(("breaks", "kept"), [("begin", 0), ("log", 1), ("end", 4)])
@pytest.mark.usefixtures("kept_runs")
def test_a_tracker_that_fails_is_told_of_once_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, breaks: str, kept: int
) -> None:
    monkeypatch.setattr(FragileRun, "breaks", breaks)
    told, notes = epochs(2), Recorder()
    tracking = Tracking(["tensorboard", "mlflow"], tmp_path, notes)
    for _ in range(2):
        tell(tracking, told)
        end(tracking, told)
    once = [("begin", "last-2 seed 0"), ("log", 1), ("log", 2), ("log", 2), ("end", None)]
    assert KeptRun.calls == 2 * once
    assert FragileRun.calls == once[:kept]
    assert notes.warned == [
        "mlflow failed and receives nothing more: ConnectionError: nobody answers"
    ]


@pytest.mark.usefixtures("kept_runs")
def test_a_failed_run_says_why(tmp_path: Path) -> None:
    tracking, record = Tracking(["tensorboard"], tmp_path, Recorder()), failed("last-2")
    tracking.on_run_begin(config_of("last-2"))
    tracking.on_run_end(record)
    assert KeptRun.calls[-1] == ("end", "it broke")


@pytest.mark.usefixtures("kept_runs")
def test_only_runs_that_have_begun_are_tracked(tmp_path: Path) -> None:
    Tracking(["tensorboard"], tmp_path, Recorder()).on_epoch_end(config_of(), epochs(1)[0])
    assert KeptRun.calls == []


def test_configurations_and_records_are_flat() -> None:
    config = config_of(data="d" * 600, strategy={"name": "last-k", "options": {"k": 2, "x": None}})
    found = parameters(config)
    assert found["strategy.options.k"] == 2
    assert found["strategy.options.x"] == "null"
    assert found["task.labels"] == '["a", "b"]'
    assert found["fingerprint"] == config.fingerprint
    assert len(str(found["data"])) == 500
    told = of_record(record_of())
    assert {"test/accuracy", "best_dev/accuracy", "cost/storage_bytes"} <= set(told)
    assert not any(name.startswith("cost/") for name in of_record(failed()))


def test_unknown_and_missing_trackers_are_told_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(callback, "_NEEDED", {"mlflow": ("mlflow_that_is_away",)})
    with pytest.raises(ConfigError) as caught:
        check_trackers(["mlflow", "tensorbord"])
    first, second = caught.value.faults
    assert first == "track=mlflow needs mlflow_that_is_away: pip install 'totune[track]'."
    assert "'tensorboard'" in second
    (tmp_path / "only_a_folder").mkdir()  # such as W&B leaves behind
    monkeypatch.syspath_prepend(tmp_path)
    assert not callback._installed("only_a_folder")
    assert callback._installed("tensorboard")
