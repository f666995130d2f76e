"""Commands in processes of their own, which start fast.

Importing PyTorch, transformers and scikit-learn takes seconds, so one server process does it once
and every command is forked from it. Nothing has run in the server, so a command finds what it would
find as `python -m totune`.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from totune.cli import main

LIMIT = 120.0  # seconds that a command may take on a busy machine
ROOT = Path(__file__).resolve().parents[2]

_server = multiprocessing.get_context("forkserver")


def start_server() -> None:
    """Has the server ready to fork; its modules are found by PYTHONPATH.

    A process has one such server, whose list of modules is what was set last before it started: by
    these tests, by others (which are imported before any test runs), or by totune for `jobs=2`.
    """
    _server.set_forkserver_preload([__name__, "tests.end_to_end.imported"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    first = _server.Process(target=int)
    first.start()
    first.join()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def run_apart(function: Callable[..., None], *arguments: object) -> None:
    """Runs a function of a module in a process of its own, to its end."""
    start_server()
    process = _server.Process(target=function, args=arguments)
    process.start()
    process.join(LIMIT)
    assert process.exitcode == 0


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output."""
        return json.loads(self.out.splitlines()[-1])


class Command:
    """`totune ARGUMENTS`, running.

    Args:
        arguments: what follows the program's name.
        folder: where its output goes while it runs.
        environment: variables to set.
    """

    def __init__(
        self, arguments: Sequence[object], folder: Path, environment: dict[str, str]
    ) -> None:
        words = [str(argument) for argument in arguments]
        stamp = time.monotonic_ns()
        self._out, self._err = folder / f"{stamp}.out", folder / f"{stamp}.err"
        self._process = _server.Process(
            target=_run, args=(words, self._out, self._err, environment), daemon=True
        )
        self._process.start()

    def wait_for(self, happened: Callable[[], object]) -> None:
        """Returns as soon as something has happened while the command runs."""
        end = time.monotonic() + LIMIT
        while not happened():
            assert self._process.is_alive(), f"ended too early: {self.errors()}"
            assert time.monotonic() < end, f"nothing happened: {self.errors()}"
            time.sleep(0.002)

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def errors(self) -> str:
        """What it has said so far."""
        return self._err.read_text(encoding="utf-8") if self._err.exists() else ""

    def end(self) -> Ended:
        self._process.join(LIMIT)
        assert self._process.exitcode is not None, f"still running: {self.errors()}"
        return Ended(self._process.exitcode, self._out.read_text(encoding="utf-8"), self.errors())


def _run(arguments: list[str], out: Path, err: Path, environment: dict[str, str]) -> None:
    """What the new process does: the same as `python -m totune`."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.argv = ["totune", *arguments]
    main()
