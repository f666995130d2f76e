"""A process per job on this machine, with a share of its cores, or of its GPUs.

Processes are forked from a server (`multiprocessing`'s forkserver) that has imported torch,
transformers and totune and computed nothing: it has no threads that a fork would lose (Arrow's
allocator starts its own anew), and has not touched a GPU. What the jobs share is a file whose
weights each process maps into memory. Beginning a job takes 0.1 s, and its memory is given back
when it ends. The server stays for the next study, until the process that started it ends.
"""

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing import forkserver, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread
from typing import Any

import torch

from totune.errors import ConfigError, RunError
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job
from totune.runs.executors.pool import (
    Attempt,
    Died,
    JobQueue,
    environment,
    follow,
    thread_variables,
    threads_of_each,
    use_threads,
)
from totune.runs.executors.transfer import Event, Raised, Returned, Snapshot, run_safely
from totune.runs.store import Store

GRACE = 10.0  # seconds that a process has to end before it is killed
STARTED = "started"  # what a worker sends when it begins with its job


class ProcessExecutor(Executor):
    """Processes of this machine, which write into the study's folder themselves.

    Each has an equal share of the cores. The job of a process that dies is taken up by another one
    from its last epoch. The numbers are those of one process that has as many threads.

    Args:
        jobs: the number of processes at once.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
        remark: Callable[[], str] = str,
    ) -> Iterator[tuple[Job, Any]]:
        if not jobs:
            return
        queue = JobQueue(jobs, may_begin, context.progress, remark)
        with tempfile.TemporaryDirectory(prefix="totune-") as folder:
            snapshot = Path(folder) / "snapshot.pt"
            cache = context.cache.root.resolve(), context.cache.budget_bytes
            Snapshot(context, *cache).save(snapshot)
            with closing(ProcessPool(self._jobs, snapshot, store.folder.resolve())) as pool:
                yield from follow(pool, queue, context, store)


class ProcessPool:
    """Up to `size` workers at once.

    Args:
        size: the number of workers.
        snapshot: the file of what the jobs share.
        folder: the study's.
    """

    def __init__(self, size: int, snapshot: Path, folder: Path) -> None:
        self._size, self._folder = size, folder
        self._arguments = snapshot, folder, threads_of_each(size)
        self._workers: dict[int, _Worker] = {}  # by slot, which decides on the GPU
        self._has_started = False  # whether any worker ever did
        _start_server()

    def close(self) -> None:
        """Ends the workers."""
        for worker in self._workers.values():
            worker.end()

    def dispatch(self, queue: JobQueue) -> bool:
        for slot in range(self._size):
            if slot not in self._workers and (attempt := queue.next()) is not None:
                # A server keeps the variables that it was started with, so all are sent.
                variables = {**os.environ, **_gpu(slot)}
                self._workers[slot] = _Worker(attempt, variables, *self._arguments)
        return bool(self._workers)

    def poll(self) -> Iterator[tuple[Attempt, Event | Returned | Raised | Died]]:
        """As `Pool.poll`.

        Raises:
            RunError: if workers cannot be started.
        """
        ready = wait([worker.connection for worker in self._workers.values()])
        for slot, worker in list(self._workers.items()):
            if worker.connection not in ready:
                continue
            message = worker.receive()
            if message == STARTED:
                self._has_started = True
            elif isinstance(message, Event):
                yield worker.attempt, message
            else:
                yield worker.attempt, self._reap(slot, message)

    def _reap(self, slot: int, message: Returned | Raised | None) -> Returned | Raised | Died:
        """Waits for the end of a worker, whose GPU is then free; `message` is its last."""
        worker = self._workers.pop(slot)
        how = worker.end()
        if message is not None:
            return message
        if not self._has_started:
            raise RunError(
                f"A worker process {how} before it could begin. Is there memory for another copy "
                "of the encoder? A script that calls totune must do so under "
                "`if __name__ == '__main__':`, since every worker imports it."
            )
        if worker.attempt.job.folder is not None:
            for path in (self._folder / worker.attempt.job.folder).glob(f"*.{worker.pid}.tmp"):
                path.unlink(missing_ok=True)  # what it was writing
        return Died(how)


class _Worker:
    """The process of one job, seen from the study's.

    Args:
        attempt: the job.
        variables: set in its environment.
        snapshot: the file of what the jobs share.
        folder: the study's.
        threads: how many it may use.
    """

    def __init__(
        self,
        attempt: Attempt,
        variables: dict[str, str],
        snapshot: Path,
        folder: Path,
        threads: int,
    ) -> None:
        self.attempt = attempt
        self.connection, theirs = _multiprocessing().Pipe()
        arguments = _pickled(attempt.job), variables, snapshot, folder, threads
        self._process = _multiprocessing().Process(
            target=work, args=(theirs, *arguments), daemon=True
        )
        with _interrupts_blocked():
            self._process.start()
        theirs.close()
        self.pid = self._process.pid

    def receive(self) -> Any:
        """The next message; None if the process has died."""
        try:
            return pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return None

    def end(self) -> str:
        """Ends the process if it has not ended; returns how it did."""
        self.connection.close()
        self._process.join(0.2)
        self._process.terminate()
        self._process.join(GRACE)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        return _describe_end(code)


def work(
    connection: Connection,
    job: bytes,
    variables: dict[str, str],
    snapshot: Path,
    folder: Path,
    threads: int,
) -> None:
    """The main function of a worker.

    Args:
        connection: gets STARTED, events, and last what the job returned or raised; pickled.
        job: pickled.
        variables: the environment of the process that it works for.
        snapshot: the file of what the jobs share.
        folder: the study's.
        threads: how many it may use.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    Thread(target=_end_with_parent, args=(snapshot.parent,), daemon=True).start()
    os.environ.clear()
    os.environ.update(variables)
    use_threads(threads)

    def send(message: Any) -> None:
        connection.send_bytes(pickle.dumps(message))

    def run() -> Any:
        context = Snapshot.load(snapshot).restore(send)
        send(STARTED)
        return pickle.loads(job).run(context, Store(folder))

    with suppress(BrokenPipeError, ConnectionResetError):  # nobody listens any more
        send(run_safely(run))


def _end_with_parent(leftover: Path) -> None:
    """A worker whose parent was killed has nobody to work for; it cleans up for both."""
    parent = parent_process()
    assert parent is not None, "a worker is started by another process"
    wait([parent.sentinel])
    shutil.rmtree(leftover, ignore_errors=True)
    os._exit(1)


def _multiprocessing() -> Any:
    """The context of processes; where there is no forkserver (Windows), each imports anew."""
    has_server = "forkserver" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if has_server else "spawn")


def _start_server() -> None:
    """Starts the server of processes, unless it runs already.

    It imports totune, and what this process has imported of transformers for its encoder. To be
    forked, it starts no threads (workers set their own number), and looks for GPUs without CUDA.
    """
    processes = _multiprocessing()
    if processes.get_start_method() != "forkserver":
        return
    used = [name for name in sys.modules if name.startswith("transformers.")]
    processes.set_forkserver_preload(["totune.api", *used])
    found = os.pathsep.join(filter(None, sys.path))  # the server does not know of changes to it
    variables = {"PYTHONPATH": found, "PYTORCH_NVML_BASED_CUDA_CHECK": "1", **thread_variables(1)}
    with environment(variables), _interrupts_blocked():
        forkserver.ensure_running()


def _pickled(job: Job) -> bytes:
    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"{job.title}: it cannot be sent to another process ({error}). Define its class in a "
            "module, at the top level, or leave `jobs` at 1."
        ) from None


def _gpu(slot: int) -> dict[str, str]:
    """The GPU of a worker: each has its own, or they share them out in turn."""
    count = torch.cuda.device_count()
    if not count:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(index) for index in range(count)]
    return {"CUDA_VISIBLE_DEVICES": names[slot % count]}


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
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


def _describe_end(code: int) -> str:
    """How a process ended, in words, from its exit code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; the system does so when memory runs out" if name == "SIGKILL" else ""
    return f"was killed ({name}{hint})"
