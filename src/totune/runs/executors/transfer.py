"""What travels between the process of a study and its workers: shared inputs, events, files.

Loaded data and encoder travel, not where they came from: a worker needs neither files nor a hub.
"""

import copy
import pickle
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import torch
from filelock import FileLock, Timeout

from totune.features import FeatureCache
from totune.io import replacing
from totune.machine import keep_freed_memory
from totune.metrics import load_metric
from totune.progress import Progress
from totune.runs.callbacks import Callback
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.records import RunRecord
from totune.training.devices import Devices
from totune.training.history import EpochRecord

ABANDONED = 60.0  # seconds; a folder that is older and not locked has lost its worker
RECORD = "record.json"
_PREFIX, _LOCK = "totune-job-", "in-use.lock"
_OWN = {
    "cache",
    "devices",
    "progress",
    "callback",
    "_of_folds",
}  # fields of a context that stay in a process


@dataclass(frozen=True)
class Event:
    """A call of a progress or a callback in a worker, to be made in the study's process."""

    method: Literal["say", "warn", "on_run_begin", "on_epoch_end", "on_run_end"]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Returned:
    """What a job has returned."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """What a job has raised, which is no fault of a run: the whole study ends with it."""

    error: Exception


Send = Callable[[Event], None]


class SendingProgress(Progress):
    """Sends notes and warnings; bars of several workers would overwrite each other."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def say(self, message: str) -> None:
        self._send(Event("say", (message,)))

    def warn(self, message: str) -> None:
        self._send(Event("warn", (message,)))


class SendingCallback(Callback):
    """Sends the events of runs."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def on_run_begin(self, config: RunConfig) -> None:
        self._send(Event("on_run_begin", (config,)))

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self._send(Event("on_epoch_end", (config, epoch)))

    def on_run_end(self, record: RunRecord) -> None:
        self._send(Event("on_run_end", (record,)))


class EventReceiver:
    """Makes the calls that workers send.

    Args:
        context: whose progress and callback they are for.
    """

    def __init__(self, context: Context) -> None:
        self._progress, self._callback = context.progress, context.callback
        self._warned: set[str] = set()

    def receive(self, title: str, event: Event) -> None:
        """Notes get the title of their job; a warning of several workers is given once."""
        if event.method == "say":
            self._progress.say(f"{title}: {event.arguments[0]}")
        elif event.method == "warn":
            self._warn(event.arguments[0])
        else:
            getattr(self._callback, event.method)(*event.arguments)

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._progress.warn(text)


class Snapshot:
    """What the runs of a study share, without what belongs to one process; picklable.

    Args:
        context: of the study; splits that it has tokenised travel along.
        cache_dir: where a worker keeps frozen features; None for the worker's own default.
        cache_budget: bytes that they may take; None for the worker's own default.
    """

    def __init__(
        self, context: Context, cache_dir: Path | None = None, cache_budget: int | None = None
    ) -> None:
        self._shared = {
            field.name: getattr(context, field.name)
            for field in fields(context)
            if field.name not in _OWN
        }
        self._cache = cache_dir, cache_budget
        loaded = context.pretrained
        # A worker may have another device, or none.
        if loaded is not None and loaded.encoder.device.type != "cpu":
            encoder = copy.deepcopy(loaded.encoder).to("cpu")
            self._shared["pretrained"] = replace(loaded, encoder=encoder)

    def save(self, file: Path | IO[bytes]) -> None:
        """Writes it, the encoder's weights where they can be mapped into memory."""
        torch.save(self, file, pickle_protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def load(file: Path | IO[bytes]) -> "Snapshot":
        """Reads what `save` has written; weights in a file are mapped, and read when used."""
        loaded = torch.load(file, mmap=isinstance(file, Path), weights_only=False)
        assert isinstance(loaded, Snapshot), f"{file} holds no snapshot"
        return loaded

    def restore(self, send: Send) -> Context:
        """The context in this process; all contexts of one snapshot share data and encoder.

        Args:
            send: gets the calls of progress and callback.
        """
        keep_freed_memory()
        load_metric(self._shared["settings"].metric)
        devices, progress = Devices(), SendingProgress(send)
        if self._shared["pretrained"] is not None:
            self._shared["pretrained"].encoder.to(devices.device)
        return Context(
            **self._shared,
            cache=FeatureCache(*self._cache, progress),
            devices=devices,
            progress=progress,
            callback=SendingCallback(send),
        )


def run_safely(work: Callable[[], Any]) -> Returned | Raised:
    """Does some work; what it raises becomes a value that can be pickled."""
    try:
        return Returned(work())
    except Exception as error:
        return Raised(_picklable(error))


def _picklable(error: Exception) -> Exception:
    """The error with its traceback as a note; a RuntimeError if it cannot be pickled."""
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # picklers and constructors raise many kinds
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


Files = Mapping[str, np.ndarray]  # contents as bytes, by path within a folder


def read_files(folder: Path) -> Files:
    """Every finished file under `folder`, by path within it."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): np.fromfile(path, dtype=np.uint8)
        for path in paths
        if path.suffix != ".tmp"
    }


def mirror(files: Files, folder: Path) -> None:
    """Makes `folder` hold these files and no others; the record, which vouches for them, last."""
    for name in sorted(files, key=lambda name: name == RECORD):
        write_file(files[name], folder / name)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()


def write_file(content: np.ndarray, path: Path) -> None:
    """Writes a file in one rename."""
    with replacing(path) as temporary:
        content.tofile(temporary)


@contextmanager
def working_folder() -> Iterator[Path]:
    """A folder to work in, which is removed when the block ends.

    Killed workers cannot remove theirs, and checkpoints are large: the next worker on the machine
    does it for them.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, Timeout):
            if time.time() - folder.stat().st_mtime > ABANDONED:
                with FileLock(folder / _LOCK, timeout=0):
                    shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as own, FileLock(Path(own) / _LOCK):
        yield Path(own)
