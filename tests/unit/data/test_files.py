import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from totune.data.files import decode, read_bytes, table_stem, table_suffix
from totune.errors import DataError

CONTENT = b"text,label\ngut,1\n"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.csv", CONTENT),
        ("a.csv.gz", gzip.compress(CONTENT, mtime=0)),
        ("a.CSV.GZ", gzip.compress(CONTENT, mtime=0)),
        ("a.csv.xz", lzma.compress(CONTENT)),
    ],
)
def test_packed_files_are_unpacked(tmp_path: Path, name: str, packed: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(packed)
    assert read_bytes(path) == (CONTENT, ".csv")


def test_a_zip_with_one_table_is_that_table(tmp_path: Path) -> None:
    members = {"__MACOSX/._a.tsv": b"junk", "read.me": b"hello", "data/a.tsv": CONTENT}
    assert read_bytes(zipped(tmp_path / "a.zip", members)) == (CONTENT, ".tsv")


def test_a_zip_with_several_tables_lists_them(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.csv.zip", {"x.csv": CONTENT, "y.csv": CONTENT})
    with pytest.raises(DataError, match=r"exactly one table .* holds: x\.csv, y\.csv"):
        read_bytes(path)


def test_an_encrypted_or_damaged_archive_is_named(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "a.csv.xz", "a.zip"):
        path = tmp_path / name
        path.write_bytes(b"not packed at all")
        with pytest.raises(DataError, match="cannot be unpacked"):
            read_bytes(path)


def test_a_truncated_gz_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CONTENT * 100, mtime=0)[:-9])
    with pytest.raises(DataError, match="damaged, incomplete or misnamed"):
        read_bytes(path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b""), ("a.csv.gz", gzip.compress(b"", mtime=0))]
)
def test_an_empty_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.csv.* is empty"):
        read_bytes(path)


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"no known format.*\.csv, \.tsv"):
        read_bytes(path)


def test_a_missing_file_gets_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_bytes(CONTENT)
    with pytest.raises(DataError, match=r"Did you mean .*reviews\.csv"):
        read_bytes(tmp_path / "review.csv")


def test_a_wrong_encoding_names_file_line_byte_and_remedy(tmp_path: Path) -> None:
    content = "text,label\nfine,1\ncafé,2\n".encode("latin-1")
    with pytest.raises(DataError) as raised:
        decode(content, Path("a.csv"), None)
    message = str(raised.value)
    assert "a.csv is not UTF-8: line 3 holds byte 0xE9 (byte 22" in message
    assert "`encoding='windows-1252'`" in message
    assert "café" in message
    assert "café" in decode(content, Path("a.csv"), "latin-1")


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(DataError, match="no encoding called 'utf9'"):
        decode(b"x", Path("a.csv"), "utf9")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_and_line_ends_vanish(encoding: str) -> None:
    content = "text\r\né\r\nb\rc\r\n".encode(encoding)
    assert decode(content, Path("a.csv"), None) == "text\né\nb c\n"


def test_old_mac_line_ends_are_line_ends() -> None:
    assert decode(b"text\rone\r", Path("a.csv"), None) == "text\none\n"


def test_suffix_and_stem_look_through_the_packing() -> None:
    assert table_suffix("train.TSV.gz") == ".tsv"
    assert table_suffix("train.iob1.gz") is None
    assert table_stem("train.tsv.gz") == "train"
    assert table_stem("train.iob1.txt.gz") == "train.iob1"
    assert table_stem("dev.zip") == "dev"
