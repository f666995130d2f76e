"""Commands that are killed, interrupted, or out of room; then the same command, to its end.

The study must come to the same bits as one that nothing disturbed, and hold no leftovers.
"""

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.common import Place, Tally, moment, nothing, outcome

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate")


@dataclass(frozen=True)
class KillBefore:
    """Kills its own process before the n-th operation that changes a file of a folder."""

    operation: int
    folder: str

    def __call__(self) -> None:
        left = self.operation

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if _changes(event, arguments) and str(arguments[0]).startswith(self.folder):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)


@dataclass(frozen=True)
class Count:
    """Counts the operations that change a file of a folder, into a file."""

    folder: str
    into: str

    def __call__(self) -> None:
        file = os.open(self.into, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            if _changes(event, arguments) and str(arguments[0]).startswith(self.folder):
                os.write(file, b".")

        sys.addaudithook(watch)


@dataclass(frozen=True)
class LimitFiles:
    """Lets no file grow beyond so many bytes, as a full disk does; that of messages neither."""

    size: int

    def __call__(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, resource.RLIM_INFINITY))


def _changes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & _WRITES)
    return event in _CHANGES


def run(place: Place, count: int, seed: int, ways: tuple[str, ...] = ()) -> Tally:
    """Disturbs a study `count` times.

    Args:
        place: where.
        count: how many disturbances.
        seed: of what they are.
        ways: the ways to choose from; all if empty.
    """
    rng, tally = random.Random(seed), Tally("kills", seed)
    chosen = ways or ("random moment", "file operation", "interrupt", "terminate", "full disk")
    with place.scratch() as folder:
        began = time.monotonic()
        expected, operations = _undisturbed(place, folder)
        seconds = time.monotonic() - began
        for _ in range(count):
            way = rng.choice(chosen)
            tally.seen[way] += 1
            _disturb(place, folder, way, rng, (seconds, operations), tally)
            tally.tried += 1
            if rng.random() < 0.6:  # else the study that goes on is disturbed, too
                _finish(place, folder / "study", expected, way, tally)
        if (folder / "study").exists():
            _finish(place, folder / "study", expected, "last", tally)
    return tally


def _undisturbed(place: Place, folder: Path) -> tuple[Any, int]:
    """What the study comes to, and how many operations on its files it makes."""
    study, counted = folder / "study", folder / "operations"
    place.forget_features()
    ended = place.run(*place.compare(study), prepare=Count(str(study), str(counted)))
    assert ended.code == 0, ended.err
    expected = outcome(study)
    study.rename(folder / "whole")
    return expected, counted.stat().st_size


def _disturb(
    place: Place,
    folder: Path,
    way: str,
    rng: random.Random,
    measured: tuple[float, int],
    tally: Tally,
) -> None:
    seconds, operations = measured
    study = folder / "study"
    if rng.random() < 0.5:
        place.forget_features()
    prepare: Callable[[], None] = nothing
    if way == "file operation":
        prepare = KillBefore(rng.randint(1, operations), str(study))
    if way == "full disk":
        prepare = LimitFiles(rng.choice((3000, 4000, 8000, 30_000, 100_000, 400_000)))
    running = place.start(*place.compare(study), prepare=prepare)
    signals = {
        "random moment": signal.SIGKILL,
        "interrupt": signal.SIGINT,
        "terminate": signal.SIGTERM,
    }
    if way in signals:
        time.sleep(moment(rng, seconds))
        running.send(signals[way])
    ended = running.end()
    killed = (-signal.SIGKILL, -signal.SIGTERM) if way not in ("interrupt", "full disk") else ()
    tally.judge(way, ended, (0, 2, 130, *killed))


def _finish(place: Place, study: Path, expected: Any, way: str, tally: Tally) -> None:
    ended = place.run(*place.compare(study))
    tally.judge(f"going on after: {way}", ended, (0,))
    if ended.code == 0:
        if outcome(study) != expected:
            tally.found.append(f"lost: other results after: {way}")
        left = [str(path) for path in study.rglob("checkpoint.pt")]
        if left:
            tally.found.append(f"leftovers after: {way}: {left}")
    study.rename(study.with_name(f"done-{time.monotonic_ns()}"))
