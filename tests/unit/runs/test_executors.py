"""The parts of executors that need no other process."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.recorder import Recorder
from tests.unit.runs.samples import config_of, context_of, record_of

from totune.errors import ConfigError, RunError
from totune.runs.callbacks import Callback
from totune.runs.context import Context
from totune.runs.executors import create_executor, pool, processes
from totune.runs.executors.base import Executor, Job, SerialExecutor
from totune.runs.executors.pool import JobQueue
from totune.runs.executors.processes import ProcessExecutor
from totune.runs.executors.ray import RayExecutor
from totune.runs.executors.ray_session import Needs
from totune.runs.executors.transfer import (
    Event,
    EventReceiver,
    Raised,
    Returned,
    SendingCallback,
    SendingProgress,
    mirror,
    read_files,
    run_safely,
    working_folder,
)
from totune.runs.run import Run
from totune.runs.runner import RunJob
from totune.runs.settings import Settings
from totune.runs.store import Store


@dataclass(frozen=True)
class Nothing(Job):
    """A job without a folder."""

    def run(self, context: Context, store: Store) -> str:
        return self.title


def test_jobs_wait_in_order_and_some_may_not_begin(recorder: Recorder) -> None:
    asked: list[str] = []

    def may_begin(job: Job) -> bool:
        asked.append(job.title)
        return job.title != "b"

    queue = JobQueue([Nothing(title) for title in "abc"], may_begin, recorder)
    first = queue.next()
    assert first is not None
    assert asked == recorder.said == ["a"]
    assert queue.retry(first, "was killed") is None
    assert recorder.warned == ["a: its worker was killed; another one goes on from the last epoch."]
    assert queue.next() is first
    second = queue.next()
    assert second is not None
    assert second.job.title == "c"
    assert queue.next() is None
    assert asked == ["a", "b", "c"]
    assert recorder.said == ["a", "c"]


def test_a_job_that_kills_its_workers_is_given_up(recorder: Recorder) -> None:
    queue = JobQueue([Nothing("a")], lambda _: True, recorder)
    for death in range(3):
        attempt = queue.next()
        assert attempt is not None
        reason = queue.retry(attempt, "was killed (SIGKILL)")
        assert (reason is None) == (death < 2)
    assert reason is not None
    assert "after 3 workers had died over it" in reason
    assert "was killed (SIGKILL)" in reason
    assert queue.next() is None


def test_a_run_that_is_given_up_is_a_failed_record(recorder: Recorder, tmp_path: Path) -> None:
    class Seen(Callback):
        def on_run_end(self, record: Any) -> None:
            recorder.say(record.fingerprint)

    context, store = context_of(recorder), Store(tmp_path)
    context.callback, context.precision = Seen(), "fp32"
    config = config_of("tf-idf")
    job = RunJob("run 1/1", Run(config, None))  # type: ignore[arg-type]
    record, seconds = job.fail("it was given up", context, store)
    assert (record.status, record.error, seconds) == ("failed", "it was given up", 0.0)
    assert store.record(config.fingerprint) == record
    assert recorder.said == [config.fingerprint]
    with pytest.raises(RunError, match="a: it was given up"):
        Nothing("a").fail("it was given up", context, store)


def test_events_are_delivered_with_their_job_and_warnings_once(recorder: Recorder) -> None:
    seen: list[tuple[Any, ...]] = []

    class Seen(Callback):
        def on_run_begin(self, config: Any) -> None:
            seen.append(("begun", config))

        def on_epoch_end(self, config: Any, epoch: Any) -> None:
            seen.append(("epoch", config, epoch))

        def on_run_end(self, record: Any) -> None:
            seen.append(("ended", record))

    context = context_of(recorder)
    context.callback = Seen()
    sent: list[Event] = []
    progress, callback = SendingProgress(sent.append), SendingCallback(sent.append)
    record, config = record_of(), config_of()
    for _ in range(2):
        progress.say("continuing after epoch 1")
        progress.warn("the disk is full")
    callback.on_run_begin(config)
    callback.on_epoch_end(config, record.epochs[0])
    callback.on_run_end(record)
    receiver = EventReceiver(context)
    for event in sent:
        receiver.receive("run 1/2", event)
    assert recorder.said == ["run 1/2: continuing after epoch 1"] * 2
    assert recorder.warned == ["the disk is full"]
    assert seen == [("begun", config), ("epoch", config, record.epochs[0]), ("ended", record)]


def test_a_folder_is_carried_whole(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for name in ("record.json", "weights/a.safetensors", "checkpoint.pt.77.tmp", "empty"):
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "empty" else name)
    there.mkdir()
    (there / "checkpoint.pt").write_text("old")
    mirror(read_files(here), there)
    found = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert found == {"record.json", "weights/a.safetensors", "empty"}
    assert (there / "weights/a.safetensors").read_text() == "weights/a.safetensors"


def test_the_folders_of_killed_workers_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, fresh = tmp_path / "totune-job-a", tmp_path / "totune-job-b"
    for folder in (abandoned, fresh):
        folder.mkdir()
        (folder / "checkpoint.pt").write_text("large")
    with working_folder() as busy:
        for folder in (abandoned, busy):
            os.utime(folder, (0, 0))
        with working_folder() as other:
            assert sorted(tmp_path.iterdir()) == sorted((busy, fresh, other))
    assert list(tmp_path.iterdir()) == [fresh]


def test_the_record_arrives_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "totune.runs.executors.transfer.write_file", lambda _, path: written.append(path.name)
    )
    mirror(dict.fromkeys(("a", "record.json", "z"), np.zeros(1, np.uint8)), tmp_path)
    assert written == ["a", "z", "record.json"]


@pytest.mark.parametrize(
    ("cores", "own", "processes", "each"),
    [(8, 8, 2, 4), (8, 8, 3, 2), (2, 2, 4, 1), (8, 1, 2, 1)],
)
def test_cores_are_shared_out(
    monkeypatch: pytest.MonkeyPatch, cores: int, own: int, processes: int, each: int
) -> None:
    monkeypatch.setattr(pool, "usable_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: own)
    assert pool.threads_of_each(processes) == each


def test_variables_hold_while_processes_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("RAYON_NUM_THREADS", raising=False)
    with pool.environment(pool.thread_variables(2)):
        assert (os.environ["OMP_NUM_THREADS"], os.environ["RAYON_NUM_THREADS"]) == ("2", "2")
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "RAYON_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(
    ("count", "visible", "expected"),
    [
        (0, None, [None, None, None]),
        (2, None, ["0", "1", "0"]),
        (2, "4,GPU-x", ["4", "GPU-x", "4"]),
    ],
)
def test_workers_take_the_gpus_in_turn(
    monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None, expected: list[str | None]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = [processes._gpu(number).get("CUDA_VISIBLE_DEVICES") for number in range(3)]
    assert found == expected


def test_what_a_machine_of_a_cluster_can_hold() -> None:
    machine = {"CPU": 8.0, "GPU": 1.0}
    assert Needs(2, 0).fit(machine) == 4
    assert Needs(0.1, 0).fit({"CPU": 0.3}) == 3
    assert Needs(2, 0.5).fit(machine) == 2
    assert Needs(2, 2).fit(machine) == 0
    assert Needs(1, 1).fit({"CPU": 8.0}) == 0
    assert (Needs(0.5, 0).threads, Needs(3, 0).threads) == (1, 3)
    assert str(Needs(2, 0.5)) == "2 CPUs and 0.5 GPUs"


def test_what_is_raised_elsewhere_can_be_sent() -> None:
    class Local(Exception):
        pass

    def fail(error: Exception) -> Any:
        raise error

    assert run_safely(lambda: 3) == Returned(3)
    sent = run_safely(lambda: fail(ConfigError(["one", "two"])))
    assert isinstance(sent, Raised)
    assert isinstance(sent.error, ConfigError)
    assert "In a worker:" in sent.error.__notes__[0]
    local = run_safely(lambda: fail(Local("it broke")))
    assert isinstance(local, Raised)
    assert str(local.error) == "Local: it broke"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, SerialExecutor), ({"jobs": 2}, ProcessExecutor), ({"executor": "ray"}, RayExecutor)],
)
def test_settings_choose_the_executor(settings: dict[str, Any], kind: type[Executor]) -> None:
    if kind is RayExecutor:
        pytest.importorskip("ray")
    assert type(create_executor(Settings(**settings))) is kind


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"jobs": 0}, "jobs=0 is out of range: it must be at least 1."),
        ({"address": "auto"}, "`address`: of use on a Ray cluster alone; add `executor='ray'`."),
        ({"cpus_per_run": 0.0, "executor": "ray"}, "cpus_per_run=0.0 is out of range"),
        ({"gpus_per_run": -1.0, "executor": "ray"}, "gpus_per_run=-1.0 is out of range"),
        ({"executor": "ray", "address": "ray://head:10001"}, "with `address='auto'`"),
        ({"executor": "ray", "search_trials": 3}, "name one with `search_storage`"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**settings).candidates()
    assert len(caught.value.faults) == 1
    assert fault in caught.value.faults[0]


@pytest.mark.parametrize("settings", [{"jobs": 2}, {"executor": "ray"}])
def test_runs_are_not_spread_twice(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    Settings().candidates()
    with pytest.raises(ConfigError, match="leave out `jobs` and `executor`"):
        Settings(**settings).candidates()


def test_ray_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'totune\[ray\]'"):
        create_executor(Settings(executor="ray"))
