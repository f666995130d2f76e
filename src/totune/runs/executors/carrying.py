"""A job's folder on its way between machines: files as arrays of bytes, by name."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

ABANDONED = 60.0  # seconds; a folder that is older and not locked has lost its worker
RECORD = "record.json"
_PREFIX, _LOCK = "totune-job-", "in-use.lock"

Files = Mapping[str, np.ndarray]


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
    """Writes beside `path` and renames: a reader finds the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    content.tofile(temporary)
    temporary.replace(path)


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder to work in, which goes when the block ends.

    Killed workers cannot remove theirs, and checkpoints are large: the next one on the machine
    does it for them.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, Timeout):
            if time.time() - folder.stat().st_mtime > ABANDONED:
                with FileLock(folder / _LOCK, timeout=0):
                    shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as place, FileLock(Path(place) / _LOCK):
        yield Path(place)
