"""Files that are whole whenever they are there, checksums that tell damage, faults in words.

A file is written beside its place, synced to the disk, then renamed. JSON that results are read
from carries a hash of its own content, and of the files that it vouches for.
"""

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

CHECKSUM = "sha256"  # the entry of a JSON object that holds the hash of all others
_UNFINISHED = re.compile(r"(?P<name>.+)\.(?P<process>\d+)\.tmp")
_ABANDONED = 60.0  # seconds without a write, after which an unfinished file may be removed


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when the block ends.

    A reader finds the old file or the new one, never half of one, even after a power cut. If the
    block raises, the old file stays and what was written is removed. What a killed process leaves
    is called `NAME.PROCESS-ID.tmp`. The file has the permissions that a new file gets, whoever
    writes it (safetensors would let nobody else read it).

    Args:
        path: the file; its folder is made if it is not there.

    Raises:
        OSError: there is no room, or no right to write; it names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as fault:
        if fault.errno is not None and fault.filename in (None, str(temporary)):
            fault.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes a rename in this folder durable, where the system can."""
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one rename; raises `OSError` as `replacing` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 in one rename; raises `OSError` as `replacing` does.

    Parts of names that are not UTF-8 become question marks.
    """
    write_bytes(path, text.encode("utf-8", "replace"))


def write_json(path: Path, data: Any) -> None:
    """Writes indented JSON in one rename; raises `OSError` as `replacing` does."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if not _is_unicode(text):  # a path of bytes that are not UTF-8, which must come back
        text = json.dumps(data, indent=2)
    write_text(path, f"{text}\n")


def write_checked_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a JSON object with a hash of its content, as `write_json` does."""
    write_json(path, {**data, CHECKSUM: _content_hash(data)})


def read_checked_json(path: Path) -> dict[str, Any]:
    """Reads what `write_checked_json` wrote; an object without a hash, of old, as it is.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no JSON object, or another one than was written.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("it holds no JSON object")
    expected = data.pop(CHECKSUM, None)
    if expected is not None and expected != _content_hash(data):
        raise ValueError(
            f"it is damaged or was changed: its content does not match the hash under {CHECKSUM!r} "
            "(remove that entry if the change was meant)"
        )
    return data


def settle(folder: Path) -> dict[str, str]:
    """Makes the files that libraries wrote to a new folder durable, and as readable as any other.

    Returns:
        The SHA-256 of every file in `folder` and below, by its path within.
    """
    probe = folder / f"mode.{os.getpid()}.tmp"
    probe.touch()
    mode = probe.stat().st_mode
    probe.unlink()
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        path.chmod(mode)  # safetensors lets nobody else read what it writes
        with path.open("rb") as file:
            os.fsync(file.fileno())
        found[path.relative_to(folder).as_posix()] = file_hash(path)
    return found


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_files(folder: Path, hashes: Mapping[str, str]) -> None:
    """Makes sure that files are what was written.

    Raises:
        ValueError: naming the first file that is missing or holds something else.
    """
    for name, expected in hashes.items():
        try:
            if file_hash(folder / name) == expected:
                continue
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise ValueError(f"{name} is missing") from None
        raise ValueError(f"{name} is damaged or was changed: it does not match its hash")


def is_unfinished(path: Path, *names: str) -> bool:
    """Whether a file is what `replacing` leaves of one of these names when it is killed."""
    found = _UNFINISHED.fullmatch(path.name)
    return found is not None and (not names or found["name"] in names)


def sweep(folder: Path) -> None:
    """Removes the unfinished files of processes that are gone, in `folder` and below."""
    for path in folder.rglob("*.tmp"):
        found = _UNFINISHED.fullmatch(path.name)
        if found is not None and path.is_file():
            with suppress(OSError):  # another process has removed it, or it is not ours to remove
                # On a shared disk the process may live on another machine.
                old = time.time() - path.stat().st_mtime > _ABANDONED
                if old and not psutil.pid_exists(int(found["process"])):
                    path.unlink()


def system_fault(error: BaseException) -> OSError | None:
    """What the operating system said about a file; None if an error is of another kind.

    Libraries in Rust quote the system; torch's writer raises a `RuntimeError` on top when it closes
    a file that did not take everything.
    """
    if isinstance(error, OSError):
        return None if error.errno is None else error
    quoted = re.search(r"\(os error (\d+)\)", str(error))
    if quoted:
        return OSError(int(quoted[1]), os.strerror(int(quoted[1])))
    behind = error.__context__ if isinstance(error, RuntimeError) else None
    return None if behind is None else system_fault(behind)


def memory_ran_out(error: BaseException) -> bool:
    """Whether an error says that there was no memory left, whichever library says it."""
    words = ("cannot allocate memory", "can't allocate memory", "not enough memory", "bad_alloc")
    return isinstance(error, MemoryError) or any(each in str(error).lower() for each in words)


_RIGHTS = "Give yourself the right to it (ls -ld shows who has it), or name another place"
_REMEDIES = {
    errno.ENOSPC: "Make room on that disk",
    errno.EDQUOT: "Make room: your share of that disk is used up",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f)",
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "Nothing can be written to that disk; name another place",
    errno.ENOENT: "Was it moved or removed meanwhile? Put it back, or name another place",
    errno.ENOTDIR: "A file stands where a folder should; move it, or name another place",
    errno.EISDIR: "A folder stands where a file should; move it, or name another place",
    errno.EEXIST: "Something else stands in its place; move it, or name another place",
    errno.ENOTEMPTY: "Something else stands in its place; move it, or name another place",
    errno.ENAMETOOLONG: "Name a place with a shorter name",
    errno.ELOOP: "Its links lead in a circle; name another place",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENFILE: "Close other programs: the machine has too many open files",
    errno.ESTALE: "The disk was mounted anew meanwhile; make sure that it is there",
    errno.EIO: "The disk cannot be read or written there; look into the machine's log",
}


def describe_fault(error: BaseException) -> str | None:
    """A fault of the operating system in words: where, why, what to do, what is kept.

    Returns:
        None if an error is no fault of a file, or one that a person cannot mend.
    """
    if isinstance(error, RuntimeError) and "determine home directory" in str(error):
        return (
            "A path begins with ~ and a name that no user has, or this user has no home folder "
            "(TOTUNE_CACHE is a path, too). Write it in full."
        )
    fault = system_fault(error)
    if fault is None or fault.errno not in _REMEDIES:
        return None
    place = fault.filename if isinstance(fault.filename, str) else "A file"
    reason = (fault.strerror or os.strerror(fault.errno)).lower()
    return (
        f"{place} cannot be read or written: {reason}. {_REMEDIES[fault.errno]}. What had finished "
        "is kept; the same command then does only the rest."
    )


def _content_hash(data: Mapping[str, Any]) -> str:
    """A hash that survives another layout, and what JSON makes of tuples and of keys."""
    plain = json.loads(json.dumps(data))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
