"""MLflow's local store and W&B's offline files, read back with their own readers."""

import importlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.unit.runs.samples import config_of, failed, record_of

from totune.runs.config import RunConfig
from totune.runs.records import EpochRecord
from totune.tracking import Tracking
from totune.training.devices import Devices

pytestmark = [
    pytest.mark.slow,
    # MLflow uses what SQLAlchemy 2.1 will take away, and both leave files to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
EPOCHS = [
    EpochRecord("all", n, {"loss": 1 / n}, {"accuracy": n / 10, "loss": 2 / n}, 0.5)
    for n in (1, 2, 3)
]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings of the machine."""
    names = ("MLFLOW_TRACKING_URI", "WANDB_MODE", "WANDB_DIR", "WANDB_PROJECT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    Devices()


def tell(tracking: Tracking, config: RunConfig, epochs: list[EpochRecord]) -> None:
    tracking.on_run_begin(config)
    for epoch in epochs:
        tracking.on_epoch_end(config, epoch)


def follow_two_runs(folder: Path, tracker: str) -> tuple[RunConfig, RunConfig]:
    """Two runs at once; the first was killed after an epoch and continues, the second fails."""
    first, second, notes = config_of("last-2"), config_of("lora", seed=1), Recorder()
    tracking = Tracking([tracker], folder, notes)
    tell(tracking, first, EPOCHS[:1])
    tell(tracking, first, EPOCHS[:2])
    tell(tracking, second, EPOCHS[:1])
    tracking.on_epoch_end(first, EPOCHS[2])
    tracking.on_run_end(record_of("last-2", test={"accuracy": 0.75}, epochs=EPOCHS))
    tracking.on_run_end(failed("lora", seed=1))
    assert notes.warned == []
    return first, second


@pytest.mark.parametrize("kind", ["local", "named"])
def test_mlflow_holds_each_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: totune[track]")
    study = tmp_path / "the study's"
    store = f"sqlite:///{study / 'tracking/mlflow/mlflow.db'}"
    if kind == "named":
        store = f"sqlite:///{tmp_path / 'other.db'}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    first, _ = follow_two_runs(study, "mlflow")
    assert mlflow.active_run() is None
    assert mlflow.is_tracking_uri_set() == (kind == "named")
    client = mlflow.MlflowClient(store)
    experiment = client.get_experiment_by_name("the study s")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert {name: run.info.status for name, run in runs.items()} == {
        "last-2 seed 0": "FINISHED",
        "lora seed 1": "FAILED",
    }
    run = runs["last-2 seed 0"]
    assert run.data.params["strategy.name"] == "last-2"
    assert run.data.params["fingerprint"] == first.fingerprint
    history = client.get_metric_history(run.info.run_id, "dev/loss")
    assert [(one.step, one.value) for one in history] == [(1, 2.0), (2, 1.0), (3, 2 / 3)]
    assert run.data.metrics["test/accuracy"] == 0.75
    assert run.data.metrics["cost/train_seconds"] == 1.5
    assert runs["lora seed 1"].data.tags["error"] == "it broke"
    history = client.get_metric_history(runs["lora seed 1"].info.run_id, "train/loss")
    assert [(one.step, one.value) for one in history] == [(1, 1.0)]


def test_a_run_of_the_users_own_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: totune[track]")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'own.db'}")
    with mlflow.start_run(run_name="own") as own:
        follow_two_runs(tmp_path / "study", "mlflow")
        assert mlflow.active_run().info.run_id == own.info.run_id


def test_wandb_writes_each_run_once_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="W&B is not installed: totune[track]")
    follow_two_runs(tmp_path / "study", "wandb")
    files = sorted((tmp_path / "study/tracking/wandb/wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2
    found = {run["name"]: run for run in map(read_whole, files)}
    run = found["last-2 seed 0"]
    assert (run["project"], run["group"]) == ("totune", "study")
    assert run["config"]["strategy.name"] == "last-2"
    rows = [(row["_step"], row["dev/loss"]) for row in run["history"] if "dev/loss" in row]
    assert rows == [(1, 2.0), (2, 1.0), (3, 2 / 3)]
    assert run["history"][-1]["test/accuracy"] == 0.75
    assert (run["code"], found["lora seed 1"]["code"]) == (0, 1)


def read_whole(file: Path) -> dict[str, Any]:
    """A run's file, once W&B, which writes from a process of its own, has ended it."""
    until = time.monotonic() + 30
    while "code" not in (run := read_offline(file)):
        assert time.monotonic() < until, f"{file} was not written"
        time.sleep(0.1)
    return run


def read_offline(file: Path) -> dict[str, Any]:
    """A run's name, group, configuration, rows and exit code from its offline file.

    A log of LevelDB's layout: after the file's head of 7 bytes, records of checksum (4 bytes),
    length (2) and kind (1), which are whole within the first block of 32 KiB.
    """
    data, at = file.read_bytes(), 7
    assert len(data) < 32 * 1024
    record_type = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    run: dict[str, Any] = {"history": []}
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 6], "little")
        record = record_type()
        record.ParseFromString(data[at + 7 : at + 7 + length])
        _take(record, run)
        at += 7 + length
    return run


def _take(record: Any, run: dict[str, Any]) -> None:
    kind = record.WhichOneof("record_type")
    if kind == "run":
        run |= {"name": record.run.display_name, "project": record.run.project}
        run["group"] = record.run.run_group
        own = record.run.config.update
        run["config"] = {one.key or one.nested_key[0]: json.loads(one.value_json) for one in own}
    elif kind == "history":
        items = record.history.item
        row = {one.key or one.nested_key[0]: json.loads(one.value_json) for one in items}
        run["history"].append(row)
    elif kind == "exit":
        run["code"] = record.exit.exit_code
