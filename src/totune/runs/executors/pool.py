"""Worker processes: started when there is work, replaced when they die, ended together."""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from totune.errors import ConfigError
from totune.runs.executors.base import Job
from totune.runs.executors.threads import environment, thread_variables
from totune.runs.executors.waiting import Attempt, Waiting
from totune.runs.executors.working import work

GRACE = 10.0  # seconds that a process has to end before it is killed

_spawning = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang


class Worker:
    """A process, and what it is at.

    Args:
        number: from 0, which of several at once; decides on its GPU.
        bundle: the file of what runs share.
        folder: the study's.
        threads: how many it may use.

    Attributes:
        attempt: None while it has nothing to do.
    """

    def __init__(self, number: int, bundle: Path, folder: Path, threads: int) -> None:
        self.number = number
        self.attempt: Attempt | None = None
        self.connection, theirs = _spawning.Pipe()
        self._process = _spawning.Process(
            target=work, args=(theirs, bundle, folder, threads), daemon=True
        )
        with environment(thread_variables(threads) | _device(number)), _out_of_reach():
            self._process.start()
        theirs.close()
        assert self._process.pid is not None, "it was started"
        self.pid: int = self._process.pid

    def begin(self, attempt: Attempt) -> None:
        self.attempt = attempt
        with suppress(OSError):  # it has died, which is heard next
            self.connection.send_bytes(_pickled(attempt.job))

    def receive(self) -> Any:
        """The next message; None if it has died."""
        try:
            return pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return None

    def end(self) -> str:
        """Ends it if it has not ended; says how it did."""
        self.connection.close()
        self._process.join(0.2)
        self._process.terminate()
        self._process.join(GRACE)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        return _manner(code)


class Pool:
    """Up to `size` workers at once; a context manager, which ends them."""

    def __init__(self, size: int, bundle: Path, folder: Path, threads: int) -> None:
        self._size, self._needs = size, (bundle, folder, threads)
        self._workers: list[Worker] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def employ(self, waiting: Waiting) -> bool:
        """Gives work to everyone who has none; false if there is nothing left to wait for."""
        while (worker := self._idle()) is not None or len(self._workers) < self._size:
            attempt = waiting.next()
            if attempt is None:
                break
            (worker or self._start()).begin(attempt)
        return any(worker.attempt is not None for worker in self._workers)

    def heard(self) -> list[Worker]:
        """Waits; the workers of whom there is something to hear."""
        ready = wait([worker.connection for worker in self._workers])
        return [worker for worker in self._workers if worker.connection in ready]

    def bury(self, worker: Worker) -> str:
        """Makes room for another worker; says how this one ended."""
        self._workers.remove(worker)
        return worker.end()

    def _idle(self) -> Worker | None:
        return next((worker for worker in self._workers if worker.attempt is None), None)

    def _start(self) -> Worker:
        taken = {worker.number for worker in self._workers}
        number = next(number for number in range(self._size) if number not in taken)
        worker = Worker(number, *self._needs)
        self._workers.append(worker)
        return worker


def _pickled(job: Job) -> bytes:
    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"{job.title}: it cannot be sent to another process ({error}). Define its class in a "
            "module, at the top level, or leave `jobs` at 1."
        ) from None


def _device(number: int) -> dict[str, str]:
    """The GPU of a worker: each has its own, or they share them out in turn."""
    count = torch.cuda.device_count()
    if not count:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(index) for index in range(count)]
    return {"CUDA_VISIBLE_DEVICES": names[number % count]}


@contextmanager
def _out_of_reach() -> Iterator[None]:
    """Processes that are started meanwhile do not see Ctrl-C, which a terminal sends to all.

    They begin with it blocked, since it may come before they can ignore it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting this helper of multiprocessing would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _manner(code: int) -> str:
    """How a process ended, in words, from its exit code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; the system does so when memory runs out" if name == "SIGKILL" else ""
    return f"was killed ({name}{hint})"
