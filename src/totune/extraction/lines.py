"""The lines of a text file, packed or not, as they are asked for."""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from totune.data.files import decode, missing_file
from totune.errors import DataError

_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
_OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
_HEAD = 1 << 16  # bytes that tell how lines end


def read_lines(path: Path, encoding: str | None = None) -> Iterator[str]:
    """Yields every line without its end; never holds more than one and a small buffer.

    Args:
        path: a text file, or one packed as .gz or .xz.
        encoding: None for UTF-8 (or UTF-16 where a byte order mark says so).

    Raises:
        DataError: the file is missing, damaged or empty, or a byte does not fit the encoding.
    """
    decode(b" ", path, encoding)  # refuses an encoding that there is not
    with _reading(path) as file:
        head: bytes = file.peek(_HEAD)  # type: ignore[attr-defined]
        if not head:
            raise DataError(f"{path} is empty. Is the download or export complete?")
        used = encoding or ("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        old_mac = b"\r" in head and b"\n" not in head
        text = io.TextIOWrapper(file, encoding=used, newline=None if old_mac else "\n")
        try:
            for line in text:
                yield line.removesuffix("\n").removesuffix("\r").replace("\r", " ")
        except UnicodeDecodeError as error:
            raise DataError(_undecodable(path, used, error)) from None


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    if not path.is_file():
        raise missing_file(path)
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as opened:
            yield opened
    except _DAMAGED as error:
        raise DataError(
            f"{path} cannot be read ({error}): it is damaged, incomplete or misnamed."
        ) from None


def _undecodable(path: Path, encoding: str, error: UnicodeDecodeError) -> str:
    """What does not fit and where; text is decoded in blocks, so the line is looked for anew."""
    place = ""
    if not encoding.startswith("utf-16"):
        with _reading(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as found:
                    error, place = found, f"line {number:,} holds "
                    break
    name = encoding.removesuffix("-sig").upper()
    return (
        f"{path} is not {name}: {place}byte 0x{error.object[error.start]:02X}. Name its encoding, "
        "for example --encoding windows-1252."
    )
