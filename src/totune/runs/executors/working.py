"""What a worker process of this machine does: one job after the other, until it is ended."""

import os
import pickle
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread
from typing import Any

from totune.runs.context import Context
from totune.runs.executors.outcomes import Raised, outcome_of
from totune.runs.executors.threads import use_threads
from totune.runs.store import Store


@dataclass(frozen=True)
class Ready:
    """A worker has what the runs share, and begins with its first job."""


def work(connection: Connection, bundle: Path, folder: Path, threads: int) -> None:
    """The main function of a worker.

    Args:
        connection: pickled jobs come in; messages and outcomes go out, pickled.
        bundle: the pickled `Shipped`.
        folder: the study's.
        threads: how many it may use.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    Thread(target=_end_with_parent, args=(bundle.parent,), daemon=True).start()
    use_threads(threads)

    def send(message: Any) -> None:
        connection.send_bytes(pickle.dumps(message))

    def unpack() -> Context:
        context: Context = pickle.loads(bundle.read_bytes()).unpack(send)
        return context

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody listens any more
        unpacked = outcome_of(unpack)
        if isinstance(unpacked, Raised):
            return send(unpacked)
        send(Ready())
        while True:
            job = connection.recv_bytes()
            send(outcome_of(lambda: pickle.loads(job).run(unpacked.value, Store(folder))))  # noqa: B023


def _end_with_parent(leftover: Path) -> None:
    """A worker whose parent was killed has nobody to work for; it cleans up for both."""
    parent = parent_process()
    assert parent is not None, "a worker is started by another process"
    wait([parent.sentinel])
    shutil.rmtree(leftover, ignore_errors=True)
    os._exit(1)
