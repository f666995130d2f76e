"""From a path to the lines of a file: unpacks, decodes, and names what is wrong with it."""

import codecs
import difflib
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any

from totune.errors import DataError

CONLL_SUFFIXES = (".conll", ".bio", ".iob", ".iob2", ".iobes")
TABLE_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx"),
    *CONLL_SUFFIXES,
)
PACKED_SUFFIXES = (".gz", ".xz", ".zip")
_HEAD = 1 << 16  # bytes that tell the encoding and how lines end
_ZEROS = 0.01  # share of zero bytes above which a text has two or four bytes a character
_ALL = 0.95  # share of zeros among the upper bytes of characters of four
_CLEAR = 4.0  # how many times more zeros the upper bytes of characters have than the lower ones
_AROUND = 20  # bytes on both sides of a wrong one that a message shows
_BAD_PACKING = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


def table_suffix(name: str) -> str | None:
    """The suffix of a table's format (".csv" for "train.csv.gz"), None if it is no known one."""
    path = PurePath(name.lower())
    if path.suffix in PACKED_SUFFIXES:
        path = PurePath(path.stem)
        if path.suffix not in TABLE_SUFFIXES and name.lower().endswith(".zip"):
            return ".zip"
    return path.suffix if path.suffix in TABLE_SUFFIXES else None


def table_stem(name: str) -> str:
    """A file's name without the suffixes of its format and packing ("train" for "train.tsv.gz")."""
    path = PurePath(name)
    if path.suffix.lower() in PACKED_SUFFIXES:
        path = PurePath(path.stem)
    return path.stem if path.suffix.lower() in TABLE_SUFFIXES else path.name


def table_format(path: Path) -> str:
    """The suffix of a file's format; of an archive, that of the table it holds.

    Raises:
        DataError: the file is missing, of no known format, or an archive of anything else than one
            table.
    """
    if not path.exists():
        raise missing_file(path)
    suffix = table_suffix(path.name)
    if suffix is None:
        raise DataError(
            f"{path} is of no known format: its name should end in one of "
            f"{', '.join(TABLE_SUFFIXES)}, with {', '.join(PACKED_SUFFIXES)} after it if packed."
        )
    if path.suffix.lower() == ".zip":
        with _naming_faults(path), zipfile.ZipFile(path) as archive:
            return table_suffix(_only_table(archive, path)) or ""
    return suffix


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, packed or not, as they are asked for.

    Raises:
        DataError: the file is missing, unreadable, badly packed or empty.
    """
    if not path.exists():
        raise missing_file(path)
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise DataError(
            f"{path} is {kind}, not a file, which is read more than once. Write it to a file first."
        )
    with _naming_faults(path), _opened(path) as file:
        if not file.peek(1):
            raise DataError(
                f"{path} is empty (it holds no text). Is the download or export complete?"
            )
        yield file


def read_lines(path: Path, encoding: str | None = None) -> Iterator[str]:
    """Yields every line without its end; never holds more than one and a small buffer.

    Args:
        path: a text file, packed or not.
        encoding: None for UTF-8 (or UTF-16 or UTF-32 where a byte order mark says so).

    Raises:
        DataError: the file is missing, damaged or empty, a byte does not fit the encoding, or there
            is no such encoding.
    """
    with unpacked(path) as file:
        head: bytes = file.peek(_HEAD)  # type: ignore[attr-defined]
        used = _codec(encoding, head, path)
        old_mac = b"\r" in head and b"\n" not in head
        text = io.TextIOWrapper(file, encoding=used, newline=None if old_mac else "\n")
        try:
            for number, line in enumerate(text):
                line = line if number else line.removeprefix("\ufeff")
                yield line.removesuffix("\n").removesuffix("\r").replace("\r", " ")
        except UnicodeError as error:
            raise DataError(_undecodable(path, used, error)) from None


def missing_file(path: Path) -> DataError:
    """The error for a path that is not there, with the nearest name beside it."""
    folder = path.parent
    if not folder.is_dir():
        return DataError(f"There is no file or folder {path}: {folder} does not exist either.")
    if path.is_symlink():
        return DataError(f"{path} is a link to nothing, or to itself; name the file itself.")
    names = sorted(entry.name for entry in folder.iterdir())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {folder / near[0]}?" if near else ""
    return DataError(f"There is no file or folder {path}.{hint}")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    kind = path.suffix.lower()
    if kind == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_only_table(archive, path)) as member:
            yield member
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(kind, open)(path, "rb") as file:
        yield file


@contextmanager
def _naming_faults(path: Path) -> Iterator[None]:
    """Makes what opening and unpacking raise one message."""
    kind = path.suffix.lower()
    try:
        yield
    except (OSError, *_BAD_PACKING) as error:
        if kind not in PACKED_SUFFIXES:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{path} cannot be read: {reason}.") from None
        raise DataError(
            f"{path} cannot be unpacked as {kind} ({error}): it is damaged, incomplete or misnamed."
        ) from None


def _only_table(archive: zipfile.ZipFile, path: Path) -> str:
    names = [n for n in archive.namelist() if table_suffix(n) and not n.startswith("__MACOSX")]
    if len(names) != 1:
        held = ", ".join(names or archive.namelist()) or "nothing"
        raise DataError(
            f"{path} should hold exactly one table ({', '.join(TABLE_SUFFIXES)}) but holds: {held}."
            " Unpack it and name the file or the folder."
        )
    return names[0]


def _codec(encoding: str | None, head: bytes, path: Path) -> str:
    """The codec of a text file, by its name or else by its first bytes.

    Raises:
        DataError: there is no such encoding, or the first bytes are of another one.
    """
    marked = _marked_codec(head)
    used = encoding or marked or "utf-8"
    try:
        io.TextIOWrapper(io.BytesIO(b"a"), encoding=used).readline()  # refuses codecs of no text
    except UnicodeDecodeError:  # a byte is less than a character of UTF-16
        pass
    except (LookupError, UnicodeError, ValueError):
        raise DataError(
            f"There is no encoding called {encoding!r}; utf-8, windows-1252, latin-1 and utf-16 "
            "are common ones."
        ) from None
    name, found = codecs.lookup(used).name, marked or _unmarked_codec(head)
    fits = found is None or found.startswith(name) or name.startswith(marked or "-")
    if not fits:
        raise DataError(
            f"{path} looks like {str(found).upper()}, not {used.upper()}: of its first "
            f"{len(head):,} bytes, {head.count(0):,} are zero. Name it with `encoding={found!r}`, "
            "or convert the file to UTF-8."
        )
    if name in ("utf-16", "utf-32") and not marked:
        return found or f"{name}-le"  # most machines write so
    return used


def _marked_codec(head: bytes) -> str | None:
    """The codec that a byte order mark says; that of UTF-32 begins like that of UTF-16."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _unmarked_codec(head: bytes) -> str | None:
    """The codec of a text without a mark that has zeros between letters, None of any other.

    In every script, at least line ends, spaces and digits have them.
    """
    if head.count(0) <= _ZEROS * len(head):
        return None
    first, second, third, fourth = (
        head[at::4].count(0) / max(1, len(head[at::4])) for at in range(4)
    )
    if min(third, fourth) > _ALL:
        return "utf-32-le"
    if min(first, second) > _ALL:
        return "utf-32-be"
    even, odd = first + third, second + fourth
    if max(even, odd) < _CLEAR * min(even, odd):
        return None  # zeros of another kind
    return "utf-16-be" if even > odd else "utf-16-le"


def _undecodable(path: Path, encoding: str, error: UnicodeError) -> str:
    """What does not fit, and where: text is decoded in blocks, so its line is looked for anew."""
    name = encoding.upper()
    if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return f"{path} is not {name} ({error}). Name its encoding, or convert it to UTF-8."
    offset = 0
    with unpacked(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as found:
                at, likely = found.start, _likely_encoding(path)
                guess = line[max(0, at - _AROUND) : at + _AROUND].decode(likely, "replace")
                return (
                    f"{path} is not {name}: line {number:,} holds byte 0x{line[at]:02X} (byte "
                    f"{offset + at + 1:,} of the unpacked file). Name its encoding, for example "
                    f"`encoding={likely!r}`, which would read it as {guess.strip()!r}; or "
                    f"convert it, for example with iconv -f {likely} -t utf-8."
                )
            offset += len(line)
    return f"{path} is not {name} ({error}). Name its encoding, or convert it to UTF-8."


def _likely_encoding(path: Path) -> str:
    """The encoding that charset-normalizer finds likeliest for the first bytes, where installed."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return "windows-1252"
    with unpacked(path) as file:
        found = from_bytes(file.read(_HEAD)).best()
    return "windows-1252" if found is None else str(found.encoding)
