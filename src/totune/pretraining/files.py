"""The cache of what is made from a corpus, and faults of the disk as one message."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from platformdirs import user_cache_path

from totune.errors import RunError, TotuneError
from totune.io import system_fault
from totune.progress import Progress

Content = TypeVar("Content")
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError)


def cache_root() -> Path:
    """`corpora` in $TOTUNE_CACHE, or in totune's part of the platform's cache folder."""
    named = os.environ.get("TOTUNE_CACHE")
    return (Path(named).expanduser() if named else user_cache_path("totune")) / "corpora"


def cached(
    key: str, make: Callable[[Path], None], read: Callable[[Path], Content], progress: Progress
) -> Content:
    """The content of the cache folder named `key`, which is made first if it is missing.

    Several processes may ask at once: one makes the folder, the others wait. A folder that cannot
    be read is reported and made again.

    Args:
        key: a hash of everything that the content depends on.
        make: fills a new folder, which gets its name when it is complete.
        read: reads a complete folder.
        progress: receives the report of an unreadable folder.

    Raises:
        RunError: if the folder cannot be written.
    """
    root = cache_root()
    folder = root / key
    with disk_faults(f"What is made from the corpus cannot be kept in {root}", "set TOTUNE_CACHE"):
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{key}.lock"):
            if folder.is_dir():
                try:
                    return read(folder)
                except _UNREADABLE as error:
                    reason = str(error).partition("\n")[0]
                    progress.warn(f"{folder} cannot be read ({reason}), so it is made again.")
                    shutil.rmtree(folder)
            temporary = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".tmp", dir=root))
            try:
                make(temporary)
                temporary.replace(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            return read(folder)


@contextmanager
def disk_faults(problem: str, remedy: str) -> Iterator[None]:
    """Turns a fault of the disk into one message: the problem, the system's reason, the remedy.

    Raises:
        RunError: in place of what the system, or a library that wrote for us, raises.
    """
    try:
        yield
    except TotuneError:
        raise
    except Exception as error:  # torch, safetensors and tokenizers each have their own
        fault = system_fault(error)
        if fault is None:
            raise
        raise RunError(f"{problem}: {fault.strerror or fault}; {remedy}.") from None
