"""A study in several processes: the numbers of one, whatever dies meanwhile."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.end_to_end import commands
from tests.end_to_end.studies import Deadly, Variable, results
from tests.recorder import Recorder

from totune.errors import ConfigError, RunError
from totune.runs.callbacks import Callback
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.executors import processes
from totune.runs.executors.processes import ProcessExecutor
from totune.runs.prepare import prepare
from totune.runs.run import Runs, configure
from totune.runs.runner import Runner
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.training.history import EpochRecord

STRATEGIES = ("tf-idf", "feature-extraction", "fine-tuning")
EPOCHS = 3


@pytest.fixture(autouse=True)
def _forked() -> None:
    """Workers are forked from the server of these tests, if that is the first to be started."""
    commands.start_server()


@pytest.fixture
def jobs_context(data: Path, cache: Path) -> Context:
    """Of steps enough for a signal to arrive in the middle of a run."""
    settings = Settings(
        model=str(data / "encoder"), precision="fp32", per_device_train_batch_size=8
    )
    return prepare(data / "reviews.csv", settings, Recorder())


def runs_of(context: Context, *strategies: str) -> Runs:
    options = {"num_train_epochs": EPOCHS, "learning_rate": 1e-3}
    members = Settings(strategies=strategies or STRATEGIES, options=options).candidates()
    return configure(members, [0, 1], context)


def told(context: Context) -> Recorder:
    assert isinstance(context.progress, Recorder)
    return context.progress


class Killer(Callback):
    """Kills every worker after the first epoch of the first run that has several."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.killed = 0

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        if config.label == "fine-tuning":
            self.seen.append((config.fingerprint, epoch.epoch))
        if self.seen and not self.killed:
            for child in multiprocessing.active_children():
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
                self.killed += 1


def test_several_processes_come_to_the_numbers_of_one(
    jobs_context: Context, tmp_path: Path
) -> None:
    """And so do those that take over from processes that were killed."""
    runs = runs_of(jobs_context)
    alone, together = Store(tmp_path / "alone"), Store(tmp_path / "together")
    expected = Runner(jobs_context, alone, keep_all=True).execute(runs)
    jobs_context.callback = killer = Killer()
    found = Runner(jobs_context, together, ProcessExecutor(2), keep_all=True).execute(runs)
    assert [record.fingerprint for record in found] == [r.fingerprint for r in expected]
    assert {record.status for record in found} == {"finished"}
    assert results(together.folder) == results(alone.folder)
    assert killer.killed == 2
    # The other process may have delivered its result by then, which nobody misses it for.
    assert 1 <= sum("was killed (SIGKILL" in text for text in told(jobs_context).warned) <= 2
    assert [text for text in told(jobs_context).said if "continuing after epoch" in text]
    assert not [path for path in together.folder.rglob("*") if "tmp" in path.name]
    assert not list(together.folder.rglob("checkpoint.pt"))
    assert multiprocessing.active_children() == []


def test_a_job_that_kills_every_worker_ends_no_study(jobs_context: Context, tmp_path: Path) -> None:
    jobs = [Deadly("a", ""), Deadly("b", "signal"), Deadly("c", "")]
    found = {
        job.title: result
        for job, result in ProcessExecutor(2).perform(jobs, jobs_context, Store(tmp_path / "study"))
    }
    assert found["a"] == "a in a worker of 1 thread"
    assert found["c"] == "c in a worker of 1 thread"
    assert "after 3 workers had died over it" in found["b"]
    assert "SIGKILL; the system does so when memory runs out" in found["b"]
    assert len(told(jobs_context).warned) == 2


def test_jobs_find_the_variables_of_the_process_that_they_work_for(
    jobs_context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those that it had when the server was started."""
    found = []
    for value in ("before", "after"):
        monkeypatch.setenv("TOTUNE_TEST", value)
        jobs = [Variable("a", "TOTUNE_TEST"), Variable("b", "PYTORCH_NVML_BASED_CUDA_CHECK")]
        performed = ProcessExecutor(2).perform(jobs, jobs_context, Store(tmp_path / "study"))
        found.append({job.title: result for job, result in performed})
    assert found == [{"a": "before", "b": None}, {"a": "after", "b": None}]


def test_what_a_job_raises_ends_the_study(jobs_context: Context, tmp_path: Path) -> None:
    jobs = [Deadly("a", "exception"), Deadly("b", "")]
    with pytest.raises(KeyError, match="it broke") as caught:
        list(ProcessExecutor(2).perform(jobs, jobs_context, Store(tmp_path / "study")))
    assert "studies.py" in caught.value.__notes__[0]
    assert multiprocessing.active_children() == []


def test_a_job_that_cannot_be_sent_is_refused(jobs_context: Context, tmp_path: Path) -> None:
    class Local(Deadly):
        """Of a class that another process cannot find."""

    with pytest.raises(ConfigError, match="a: it cannot be sent to another process"):
        list(ProcessExecutor(2).perform([Local("a", "")], jobs_context, Store(tmp_path / "study")))


def test_workers_that_cannot_begin_end_the_study(
    jobs_context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "work", os.abort)
    with pytest.raises(RunError, match=r"A worker process .* before it could begin"):
        list(ProcessExecutor(2).perform([Deadly("a", "")], jobs_context, Store(tmp_path / "study")))


@pytest.mark.slow
def test_a_command_in_several_processes_can_be_interrupted(
    data: Path, cache: Path, tmp_path: Path
) -> None:
    """Ctrl-C goes to every process of a terminal; the command goes on later to the same study."""
    study = tmp_path / "study"
    where = ("compare", data / "reviews.csv", "--model", data / "encoder", "--out", study)
    chosen = ("--strategies", "tf-idf,fine-tuning", "--seeds", 2, "--precision", "fp32")
    settings = ("--num-train-epochs", 8, "--per-device-train-batch-size", 4, "--jobs", 2)
    command = [sys.executable, "-m", "totune", *map(str, (*where, *chosen, *settings))]
    path = os.pathsep.join([str(commands.ROOT / "src"), str(commands.ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "TOTUNE_CACHE": str(cache)}
    errors = tmp_path / "errors"
    with errors.open("w") as file:
        running = subprocess.Popen(
            command, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        while len(list(study.glob("runs/*/checkpoint.pt"))) < 2:
            assert running.poll() is None, errors.read_text()
            time.sleep(0.02)
        workers = psutil.Process(running.pid).children(recursive=True)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(60) == 130
    said = errors.read_text()
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("Interrupted. What had finished is kept")
    assert len(workers) >= 2
    assert psutil.wait_procs(workers, timeout=20)[1] == []
    assert {strategy for strategy, _ in results(study)} == {"tf-idf"}
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("continuing after epoch") == 2
    assert len(results(study)) == 4
