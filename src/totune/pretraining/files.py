"""Where what is made of a corpus is kept, and writing that a full disk cannot spoil."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from totune.errors import RunError, TotuneError


def cache_root() -> Path:
    """`corpora` in $TOTUNE_CACHE, or in totune's part of the platform's cache folder."""
    named = os.environ.get("TOTUNE_CACHE")
    return (Path(named).expanduser() if named else user_cache_path("totune")) / "corpora"


def kept(key: str, make: Callable[[Path], None]) -> Path:
    """The folder that is known by `key`; made now if it is not there yet.

    Several processes may ask at once: one makes it, the others wait.

    Args:
        key: says everything that the content depends on.
        make: fills a new folder, which gets its name when it is complete.

    Raises:
        RunError: if it cannot be written.
    """
    root = cache_root()
    folder = root / key
    with telling(f"What is made of the corpus cannot be kept in {root}", "set TOTUNE_CACHE"):
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{key}.lock"):
            if not folder.is_dir():
                temporary = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".tmp", dir=root))
                try:
                    make(temporary)
                    temporary.replace(folder)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
    return folder


@contextmanager
def telling(problem: str, remedy: str) -> Iterator[None]:
    """Makes a fault of the disk one message: the problem, the system's reason, the remedy.

    Raises:
        RunError: in place of what the system raises, or a library that wrote for us.
    """
    try:
        yield
    except TotuneError:
        raise
    except Exception as error:  # torch, safetensors and tokenizers each have their own
        reason = _reason_of_disk(error)
        if reason is None:
            raise
        raise RunError(f"{problem}: {reason}; {remedy}.") from None


def _reason_of_disk(error: BaseException) -> str | None:
    """What the system said of a file, None if it is another error."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if "(os error" in str(error):  # how libraries in Rust quote the system
        return str(error)
    # torch's writer raises again when it closes a file that did not take everything.
    return None if error.__context__ is None else _reason_of_disk(error.__context__)
