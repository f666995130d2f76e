"""The file of one entry.

- magic, length of a text (uint32), the text (readable facts as JSON), zeros up to `HEAD` bytes
- the numbers
- a CRC-32 of every `BLOCK` bytes of the above (uint32 each), and one of these checksums
"""

import json
import mmap
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

MAGIC = b"totune-features\x001"
HEAD = 4096
BLOCK = 4 << 20

Head = dict[str, Any]
State = tuple[int, int, int]  # inode, size in bytes, time of change in ns: who writes changes it


class BadEntryError(Exception):
    """A file is not the entry it should be; the message is the reason, in a few words."""


def file_size(nbytes: int) -> int:
    """The size in bytes of a file that holds `nbytes` of numbers."""
    return HEAD + nbytes + 4 * (_blocks(HEAD + nbytes) + 1)


def read_head(path: Path) -> Head:
    """The readable facts of an entry.

    Raises:
        BadEntryError: when this is not an entry or cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _parse_head(file.read(HEAD))
    except OSError as fault:
        raise BadEntryError(_reason(fault)) from None


def state_of(facts: os.stat_result) -> State:
    """By what a file that was checked is known again."""
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def open_entry(
    path: Path, key: str, nbytes: int, checked: State | None = None
) -> tuple[Head, np.ndarray]:
    """Maps an entry's numbers, after checking that every byte is what was written.

    What happens to the file while it is mapped is not seen: a change in place gives other numbers,
    and cutting it short ends the process (SIGBUS).

    Args:
        path: the file.
        key: what its head must name.
        nbytes: how many bytes of numbers it must hold.
        checked: the state that the file was checked in before, if it was.

    Returns:
        The readable facts, and the bytes, [nbytes] of uint8, read-only.

    Raises:
        FileNotFoundError: when there is no file.
        BadEntryError: when it is truncated, foreign, damaged or cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = _parse_head(file.read(HEAD))
            if head.get("key") != key:
                raise BadEntryError("it holds something else")
            if size != file_size(nbytes):
                raise BadEntryError(f"it has {size} bytes instead of {file_size(nbytes)}")
            if state_of(os.fstat(file.fileno())) != checked:
                _verify(file, HEAD + nbytes)
            content = _mapped(file.fileno())
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise BadEntryError(_reason(fault)) from None
    return head, content[HEAD : HEAD + nbytes]


class EntryWriter:
    """A new file of its final size, filled in any order.

    Args:
        path: a name that no reader looks for; the caller renames the finished file.
        head: the readable facts; "key" names the entry.
        nbytes: how many bytes of numbers will be put.
    """

    def __init__(self, path: Path, head: Head, nbytes: int) -> None:
        self.path = path
        self._head = head
        self._body = HEAD + nbytes
        self._file = path.open("xb+")
        try:
            self._file.truncate(file_size(nbytes))
            self._write_head()
        except BaseException:
            self.discard()
            raise

    def note(self, **facts: Any) -> None:
        """Adds readable facts to the head."""
        self._head = {**self._head, **facts}
        self._write_head()

    def _write_head(self) -> None:
        text = json.dumps(self._head).encode()
        if len(MAGIC) + 4 + len(text) > HEAD:
            raise ValueError("the head of a feature file is too long")
        self._file.seek(0)
        self._file.write(MAGIC + len(text).to_bytes(4, "little") + text)

    def put(self, start: int, values: np.ndarray) -> None:
        """Writes contiguous `values` at byte `start` of the numbers."""
        self._file.seek(HEAD + start)
        self._file.write(values.data)

    def finish(self) -> None:
        """Adds the checksums and waits until the disk has it all."""
        self._file.flush()
        content = _mapped(self._file.fileno())
        blocks = (content[at : min(at + BLOCK, self._body)] for at in range(0, self._body, BLOCK))
        table = np.array([zlib.crc32(block.data) for block in blocks], dtype="<u4")
        self._file.seek(self._body)
        self._file.write(table.tobytes() + zlib.crc32(table.data).to_bytes(4, "little"))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Removes the file, unless it was finished and renamed."""
        with suppress(OSError):  # a full disk fails again when the last bytes are flushed
            self._file.close()
        self.path.unlink(missing_ok=True)


def _parse_head(start: bytes) -> Head:
    prefix = len(MAGIC) + 4
    if not start:
        raise BadEntryError("it is empty")
    if len(start) < HEAD or not start.startswith(MAGIC):
        raise BadEntryError("it is not a feature file of this version")
    length = int.from_bytes(start[len(MAGIC) : prefix], "little")
    try:
        head = json.loads(start[prefix : prefix + length])
    except ValueError:
        raise BadEntryError("its head is damaged") from None
    if not isinstance(head, dict):
        raise BadEntryError("its head is damaged")
    return head


def _verify(file: IO[bytes], body: int) -> None:
    """Reads every byte; through the map, all of them would count as memory of this process."""
    file.seek(body)
    table, whole = file.read(4 * _blocks(body)), file.read(4)
    if zlib.crc32(table) != int.from_bytes(whole, "little"):
        raise BadEntryError("its checksums are damaged")
    file.seek(0)
    block, left = memoryview(bytearray(BLOCK)), body
    for expected in np.frombuffer(table, dtype="<u4"):
        count = min(BLOCK, left)
        if _read_into(file, block[:count]) < count or zlib.crc32(block[:count]) != expected:
            raise BadEntryError(f"its checksum does not match after {body - left:,} bytes")
        left -= count


def _read_into(file: IO[bytes], block: memoryview) -> int:
    return file.readinto(block)  # type: ignore[attr-defined,no-any-return]


def _mapped(descriptor: int) -> np.ndarray:
    return np.frombuffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), dtype=np.uint8)


def _blocks(body: int) -> int:
    return -(-body // BLOCK)


def _reason(fault: OSError) -> str:
    return f"it cannot be read: {(fault.strerror or str(fault)).lower()}"
