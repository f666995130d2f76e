"""What goes on in Ray's processes: jobs, and the keeper of what they must not lose."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from totune.runs.callbacks import Callback, CallbackList
from totune.runs.config import RunConfig
from totune.runs.executors.base import Job
from totune.runs.executors.carrying import (
    Files,
    mirror,
    read_files,
    workplace,
    write_file,
)
from totune.runs.executors.messages import Message
from totune.runs.executors.outcomes import Raised, Result, outcome_of
from totune.runs.executors.shipping import Shipped
from totune.runs.executors.threads import use_threads
from totune.runs.store import Store
from totune.training.history import EpochRecord

_kept: dict[str, Shipped] = {}  # of this process: what the runs of its latest study share


class Keeper:
    """An actor on the machine of the study's folder: writes into it, and collects messages.

    Args:
        folder: the study's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._messages: list[tuple[int, Message]] = []

    def keep(self, name: str, content: np.ndarray) -> None:
        """Writes a file of the study."""
        write_file(content, self._folder / name)

    def tell(self, number: int, message: Message) -> None:
        """Holds a message of the job with this number until it is taken."""
        self._messages.append((number, message))

    def take(self) -> list[tuple[int, Message]]:
        """The messages since the last time."""
        taken, self._messages = self._messages, []
        return taken


@dataclass(frozen=True)
class Assignment:
    """A job, and how it is to be done.

    Attributes:
        job: what.
        number: of the job in its study.
        study: names what it shares with others.
        threads: how many it may use.
    """

    job: Job
    number: int
    study: str
    threads: int


@dataclass(frozen=True)
class Carried:
    """What a job returned, and its folder."""

    value: Any
    files: Files


def perform(assignment: bytes, bundle: np.ndarray, files: Files, keeper: Any) -> Result | Raised:
    """Does a job in a folder of its own; its result is a `Carried`.

    Args:
        assignment: pickled.
        bundle: the pickled `Shipped`, as bytes.
        files: what its folder holds, a checkpoint to continue from for instance.
        keeper: Ray's handle of the study's `Keeper`.
    """
    return outcome_of(lambda: _perform(pickle.loads(assignment), bundle, files, keeper))


def _perform(assignment: Assignment, bundle: np.ndarray, files: Files, keeper: Any) -> Carried:
    use_threads(assignment.threads)
    line = _Line(keeper, assignment.number)
    if assignment.study not in _kept:
        _kept.clear()
        _kept[assignment.study] = pickle.loads(bundle.data)
    context = _kept[assignment.study].unpack(line.tell)
    job = assignment.job
    with workplace() as place:
        store = Store(place)
        own = None if job.folder is None else store.folder / job.folder
        if own is not None:
            mirror(files, own)
            context.callback = CallbackList(context.callback, _Carrier(store, line))
        value = job.run(context, store)
        carried = Carried(value, {} if own is None else read_files(own))
    line.wait()  # the keeper has heard all before the study hears of the end
    return carried


class _Line:
    """A job's line to the keeper; what is sent arrives in order."""

    def __init__(self, keeper: Any, number: int) -> None:
        self._keeper, self._number = keeper, number
        self._latest: Any = None

    def tell(self, message: Message) -> None:
        self._latest = self._keeper.tell.remote(self._number, message)

    def keep(self, name: str, content: np.ndarray) -> None:
        """Sends a file, while the one before has arrived: so few are on the way."""
        self.wait()
        self._latest = self._keeper.keep.remote(name, content)

    def wait(self) -> None:
        import ray

        if self._latest is not None:
            ray.get(self._latest)


class _Carrier(Callback):
    """Sends the checkpoint of every epoch to the keeper, so that it outlives this machine."""

    def __init__(self, store: Store, line: _Line) -> None:
        self._store, self._line = store, line
        self._sent: dict[Path, int] = {}

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
            self._line.keep(name, np.fromfile(path, dtype=np.uint8))
