"""From a path to text: decompresses, decodes, and names what is wrong with a file."""

import difflib
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path, PurePath

from totune.errors import DataError

CONLL_SUFFIXES = (".conll", ".bio", ".iob", ".iob2", ".iobes")
TABLE_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet"),
    *CONLL_SUFFIXES,
)
PACKED_SUFFIXES = (".gz", ".xz", ".zip")
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


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


def read_bytes(path: Path) -> tuple[bytes, str]:
    """The unpacked content of a file and its format's suffix.

    Raises:
        DataError: the file is missing, a folder, unreadable, empty, badly packed, or of no known
            format.
    """
    packed = _read(path)
    if not packed:
        raise DataError(f"{path} is empty (0 bytes). Is the download or export complete?")
    suffix = table_suffix(path.name)
    if suffix is None:
        raise DataError(
            f"{path} is of no known format: its name should end in one of "
            f"{', '.join(TABLE_SUFFIXES)}, with {', '.join(PACKED_SUFFIXES)} after it if packed."
        )
    content, suffix = _unpack(packed, path, suffix)
    if not content:
        raise DataError(f"{path} is empty: 0 bytes once unpacked.")
    return content, suffix


def decode(content: bytes, path: Path, encoding: str | None) -> str:
    """The text of a file, without byte order mark, lines ended by line feeds alone.

    Args:
        content: the unpacked bytes.
        path: named in messages.
        encoding: None for UTF-8 (or UTF-16 where a byte order mark says so).

    Raises:
        DataError: a byte does not fit the encoding, or Python does not know it.
    """
    used = encoding or _BYTE_ORDER_MARKS.get(content[:2], "utf-8")
    try:
        text = content.decode(used)
    except LookupError:
        raise DataError(
            f"There is no encoding called {encoding!r}; utf-8, windows-1252, latin-1 and utf-16 "
            "are common ones."
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(_undecodable(content, path, used, error.start)) from None
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return text.replace("\r", " " if "\n" in text else "\n")


def missing_file(path: Path) -> DataError:
    """The error for a path that is not there, with the nearest name beside it."""
    folder = path.parent
    if not folder.is_dir():
        return DataError(f"There is no file or folder {path}: {folder} does not exist either.")
    names = sorted(entry.name for entry in folder.iterdir())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {folder / near[0]}?" if near else ""
    return DataError(f"There is no file or folder {path}.{hint}")


def _read(path: Path) -> bytes:
    if not path.exists():
        raise missing_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def _unpack(packed: bytes, path: Path, suffix: str) -> tuple[bytes, str]:
    kind = path.suffix.lower()
    try:
        if kind == ".gz":
            return gzip.decompress(packed), suffix
        if kind == ".xz":
            return lzma.decompress(packed), suffix
        if kind == ".zip":
            return _only_member(packed, path)
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as bad:
        raise DataError(
            f"{path} cannot be unpacked as {kind} ({bad}): it is damaged, incomplete or misnamed."
        ) from None
    return packed, suffix


def _only_member(packed: bytes, path: Path) -> tuple[bytes, str]:
    archive = zipfile.ZipFile(io.BytesIO(packed))
    names = [n for n in archive.namelist() if table_suffix(n) and not n.startswith("__MACOSX")]
    if len(names) != 1:
        held = ", ".join(names or archive.namelist()) or "nothing"
        raise DataError(
            f"{path} should hold exactly one table ({', '.join(TABLE_SUFFIXES)}) but holds: {held}."
            " Unpack it and name the file or the folder."
        )
    return archive.read(names[0]), table_suffix(names[0]) or ""


def _undecodable(content: bytes, path: Path, encoding: str, at: int) -> str:
    line = content.count(b"\n", 0, at) + 1
    around = content[max(0, at - 20) : at + 20].split(b"\n")
    guess = b" ".join(around).decode("windows-1252", "replace").strip()
    return (
        f"{path} is not {encoding.upper()}: line {line:,} holds byte 0x{content[at]:02X} "
        f"(byte {at + 1:,} of the unpacked file). Name its encoding, for example "
        f"`encoding='windows-1252'`, which would read it as {guess!r}."
    )
