"""What runs in Ray's processes: jobs, and the actor that keeps what they must not lose."""

import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from totune.runs.config import RunConfig
from totune.runs.executors.pool import use_threads
from totune.runs.executors.transfer import (
    Event,
    Files,
    Raised,
    Returned,
    SendingCallback,
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


def perform(work: bytes, snapshot: np.ndarray, files: Files, keeper: Any) -> Returned | Raised:
    """Does a job in a folder of its own; returns its value and the folder's files.

    Args:
        work: pickled: the job, the number of its attempt, the name of its study's snapshot (which a
            process reads once), and how many threads it may use.
        snapshot: of what the jobs share, as bytes.
        files: contents of the job's folder, such as a checkpoint to continue from.
        keeper: Ray's handle of the study's `Keeper`.
    """
    return run_safely(lambda: _perform(work, snapshot, files, keeper))


def _perform(work: bytes, snapshot: np.ndarray, files: Files, keeper: Any) -> tuple[Any, Files]:
    job, number, study, threads = pickle.loads(work)
    use_threads(threads)
    with working_folder() as place:
        store = Store(place)
        reporter = _Reporter(keeper, number, store)
        if study not in _snapshots:
            _snapshots.clear()
            _snapshots[study] = Snapshot.load(BytesIO(snapshot.data))
        context = _snapshots[study].restore(reporter.send)
        own = None if job.folder is None else store.folder / job.folder
        if own is not None:
            mirror(files, own)
            context.callback = reporter
        value = job.run(context, store)
        left = {} if own is None else read_files(own)
    reporter.wait()  # all events have arrived before the study gets the result
    return value, left


class _Reporter(SendingCallback):
    """Sends events to the keeper, and the checkpoint of every epoch, which outlives this machine.

    Args:
        keeper: Ray's handle of the study's `Keeper`.
        number: of the attempt.
        store: where the job writes.
    """

    def __init__(self, keeper: Any, number: int, store: Store) -> None:
        super().__init__(lambda event: self.send(event))
        self._keeper, self._number, self._store = keeper, number, store
        self._latest: Any = None  # of what was sent, which arrives in order
        self._written = 0  # when the last checkpoint was, in nanoseconds

    def send(self, event: Event) -> None:
        self._latest = self._keeper.add.remote(self._number, event)

    def wait(self) -> None:
        import ray

        if self._latest is not None:
            ray.get(self._latest)

    def on_run_begin(self, config: RunConfig) -> None:
        super().on_run_begin(config)
        path = self._store.checkpoint(config.fingerprint)
        if path.is_file():  # it came from the keeper's machine
            self._written = path.stat().st_mtime_ns

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        super().on_epoch_end(config, epoch)
        path = self._store.checkpoint(config.fingerprint)
        written = path.stat().st_mtime_ns
        if written != self._written:
            self._written = written
            self.wait()  # so that one checkpoint at a time is on the way
            name = path.relative_to(self._store.folder).as_posix()
            self._latest = self._keeper.write.remote(name, np.fromfile(path, dtype=np.uint8))
