"""What runs in Ray's processes: jobs, and the actor that keeps what they must not lose."""

import pickle
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from totune.runs.callbacks import Callback, CallbackList
from totune.runs.config import RunConfig
from totune.runs.executors.base import Job
from totune.runs.executors.pool import use_threads
from totune.runs.executors.transfer import (
    Event,
    Files,
    Raised,
    Returned,
    Snapshot,
    mirror,
    read_files,
    run_safely,
    working_folder,
    write_file,
)
from totune.runs.store import Store
from totune.training.history import EpochRecord

_snapshots: dict[str, Snapshot] = {}  # of this process: that of its latest study


class Keeper:
    """An actor on the machine of the study's folder: writes into it, and collects events.

    Args:
        folder: the study's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._events: list[tuple[int, Event]] = []

    def write(self, name: str, content: np.ndarray) -> None:
        """Writes a file of the study."""
        write_file(content, self._folder / name)

    def add(self, number: int, event: Event) -> None:
        """Keeps an event of the attempt with this number until it is taken."""
        self._events.append((number, event))

    def take(self) -> list[tuple[int, Event]]:
        """The events since the last call."""
        taken, self._events = self._events, []
        return taken


@dataclass(frozen=True)
class Assignment:
    """A job, and how it is to be done.

    Attributes:
        job: the job.
        number: of the attempt in its study.
        study: names the snapshot, which a process reads once.
        threads: how many it may use.
    """

    job: Job
    number: int
    study: str
    threads: int


def perform(
    assignment: bytes, snapshot: np.ndarray, files: Files, keeper: Any
) -> Returned | Raised:
    """Does a job in a folder of its own; returns its value and the folder's files.

    Args:
        assignment: pickled.
        snapshot: of what the jobs share, as bytes.
        files: contents of the job's folder, such as a checkpoint to continue from.
        keeper: Ray's handle of the study's `Keeper`.
    """
    return run_safely(lambda: _perform(pickle.loads(assignment), snapshot, files, keeper))


def _perform(
    assignment: Assignment, snapshot: np.ndarray, files: Files, keeper: Any
) -> tuple[Any, Files]:
    use_threads(assignment.threads)
    sender = _Sender(keeper, assignment.number)
    if assignment.study not in _snapshots:
        _snapshots.clear()
        _snapshots[assignment.study] = Snapshot.load(BytesIO(snapshot.data))
    context = _snapshots[assignment.study].restore(sender.send)
    job = assignment.job
    with working_folder() as place:
        store = Store(place)
        own = None if job.folder is None else store.folder / job.folder
        if own is not None:
            mirror(files, own)
            context.callback = CallbackList(context.callback, _CheckpointSender(store, sender))
        value = job.run(context, store)
        left = {} if own is None else read_files(own)
    sender.wait()  # all events have arrived before the study gets the result
    return value, left


class _Sender:
    """Sends to the keeper, in order."""

    def __init__(self, keeper: Any, number: int) -> None:
        self._keeper, self._number = keeper, number
        self._latest: Any = None

    def send(self, event: Event) -> None:
        self._latest = self._keeper.add.remote(self._number, event)

    def write(self, name: str, content: np.ndarray) -> None:
        """Sends a file, once the one before has arrived: so few are on the way."""
        self.wait()
        self._latest = self._keeper.write.remote(name, content)

    def wait(self) -> None:
        import ray

        if self._latest is not None:
            ray.get(self._latest)


class _CheckpointSender(Callback):
    """Sends the checkpoint of every epoch to the keeper, so that it outlives this machine."""

    def __init__(self, store: Store, sender: _Sender) -> None:
        self._store, self._sender = store, sender
        self._sent: dict[Path, int] = {}  # when each was written

    def on_run_begin(self, config: RunConfig) -> None:
        path = self._store.checkpoint(config.fingerprint)
        if path.is_file():  # it came from there
            self._sent[path] = path.stat().st_mtime_ns

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        path = self._store.checkpoint(config.fingerprint)
        written = path.stat().st_mtime_ns
        if self._sent.get(path) != written:
            self._sent[path] = written
            name = path.relative_to(self._store.folder).as_posix()
            self._sender.write(name, np.fromfile(path, dtype=np.uint8))
