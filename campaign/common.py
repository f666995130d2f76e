"""What every part shares: a small study, commands in processes of their own, and what they did.

A command is forked from a server that has imported everything, so it begins in milliseconds.
"""

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tests.end_to_end.commands import Ended, _server, start_server
from tests.end_to_end.studies import results
from tests.tiny_data import save_encoder, write_reviews

from totune.cli import main

HANGING = 60.0  # seconds
HUNG = 124  # the exit code of a command that was ended for that
STRATEGIES = "tf-idf,feature-extraction,fine-tuning"
# Exit codes of a command that a person can understand: done, a run failed, told, interrupted.
UNDERSTOOD = (0, 1, 2, 130)


@dataclass
class Tally:
    """What a part has found.

    Attributes:
        part: its name.
        seed: that repeats it.
        tried: how often.
        found: what went wrong, in a sentence each: lost, believed, fault, traceback, hang.
        seen: how often each thing happened, for those who wonder what was tried.
    """

    part: str
    seed: int
    tried: int = 0
    found: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def judge(self, what: str, ended: Ended, codes: tuple[int, ...] = UNDERSTOOD) -> None:
        """Notes what no command may do."""
        last = "\n".join(ended.err.strip().splitlines()[-3:])
        self.seen[f"exit {ended.code}"] += 1
        if ended.code == HUNG:
            self.found.append(f"hang: {what}")
        elif "Traceback" in ended.err:
            self.found.append(f"traceback: {what}\n{ended.err[-3000:]}")
        elif "a fault of totune" in ended.err:
            self.found.append(f"fault: {what}\n{last}")
        elif ended.code not in codes:
            self.found.append(f"exit code {ended.code}: {what}\n{last}")

    def __str__(self) -> str:
        seen = ", ".join(f"{name} {count}" for name, count in sorted(self.seen.items()))
        lines = [f"{self.part} (seed {self.seed}): {self.tried} tried, {len(self.found)} found"]
        return "\n".join([*lines, f"  {seen}", *(f"  ! {each}" for each in self.found)])


class Running:
    """A command that runs."""

    def __init__(self, arguments: list[str], stem: Path, prepare: Callable[[], None]) -> None:
        self._out, self._err = stem.with_suffix(".out"), stem.with_suffix(".err")
        self.process = _server.Process(
            target=_run, args=(arguments, self._out, self._err, prepare), daemon=False
        )
        self.process.start()

    def send(self, number: int) -> None:
        if self.process.is_alive():
            assert self.process.pid is not None
            os.kill(self.process.pid, number)

    def end(self) -> Ended:
        self.process.join(HANGING)
        hung = self.process.is_alive()
        if hung:
            self.process.kill()
            self.process.join()
        code = HUNG if hung else self.process.exitcode
        texts = [
            path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            for path in (self._out, self._err)
        ]
        return Ended(code or 0, *texts)


def nothing() -> None:
    """What is to be done before most commands."""


@dataclass(frozen=True)
class Place:
    """A folder with data and an encoder, in which commands run.

    Attributes:
        folder: holds `reviews.csv` and `encoder/`.
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path, rows: int = 60) -> "Place":
        start_server()
        folder.mkdir(parents=True, exist_ok=True)
        write_reviews(folder / "reviews.csv", rows)
        save_encoder(folder / "encoder")
        (folder / "output").mkdir()
        return cls(folder)

    def start(self, *arguments: object, prepare: Callable[[], None] = nothing) -> Running:
        words = [str(argument) for argument in arguments]
        stem = self.folder / "output" / str(time.monotonic_ns())
        return Running(words, stem, _Apart(self.folder / "cache", prepare))

    def run(self, *arguments: object, prepare: Callable[[], None] = nothing) -> Ended:
        return self.start(*arguments, prepare=prepare).end()

    def compare(self, study: Path, strategies: str = STRATEGIES) -> tuple[object, ...]:
        """The command of a small study."""
        where = (self.folder / "reviews.csv", "--model", self.folder / "encoder", "--out", study)
        chosen = ("--strategies", strategies, "--seeds", 1, "--num-train-epochs", 3)
        settings = ("--folds", "1", "--precision", "fp32", "--keep-weights", "all")
        return ("compare", *where, *chosen, *settings)

    def forget_features(self) -> None:
        shutil.rmtree(self.folder / "cache", ignore_errors=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder that is gone after the block."""
        folder = self.folder / f"scratch-{time.monotonic_ns()}"
        folder.mkdir()
        try:
            yield folder
        finally:
            for path in [folder, *folder.rglob("*")]:
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)
            shutil.rmtree(folder)


def outcome(study: Path) -> dict[str, Any]:
    """What a study came to, to the bit: its runs, and the model that it recommends."""
    best = {path.name: path.read_bytes() for path in sorted(study.glob("best/*.safetensors"))}
    return {"runs": results(study), "best": best}


def moment(rng: random.Random, most: float) -> float:
    """A time to wait; early ones are as likely as late ones."""
    return rng.random() * most


@dataclass(frozen=True)
class _Apart:
    """What a command needs before it begins, and what else is to be done; can be pickled."""

    cache: Path
    prepare: Callable[[], None]

    def __call__(self) -> None:
        os.environ["TOTUNE_CACHE"] = str(self.cache)
        self.prepare()


def _run(arguments: list[str], out: Path, err: Path, prepare: Callable[[], None]) -> None:
    """What the new process does: the same as `python -m totune`."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.argv = ["totune", *arguments]
    prepare()
    main()
