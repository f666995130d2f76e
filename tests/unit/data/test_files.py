import gzip
import lzma
import os
import zipfile
from pathlib import Path

import pytest

from totune.data.files import read_lines, table_format, table_stem, table_suffix
from totune.errors import DataError

CONTENT = b"text,label\ngut,1\n"


def read(path: Path, encoding: str | None = None) -> bytes:
    return "".join(f"{line}\n" for line in read_lines(path, encoding)).encode()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


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
    assert (read(path), table_format(path)) == (CONTENT, ".csv")


def test_a_zip_with_one_table_is_that_table(tmp_path: Path) -> None:
    members = {"__MACOSX/._a.tsv": b"junk", "read.me": b"hello", "data/a.tsv": CONTENT}
    path = zipped(tmp_path / "a.zip", members)
    assert (read(path), table_format(path)) == (CONTENT, ".tsv")


def test_a_zip_with_several_tables_lists_them(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.csv.zip", {"x.csv": CONTENT, "y.csv": CONTENT})
    with pytest.raises(DataError, match=r"exactly one table .* holds: x\.csv, y\.csv"):
        table_format(path)


def test_an_encrypted_or_damaged_archive_is_named(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "a.csv.xz", "a.zip"):
        path = tmp_path / name
        path.write_bytes(b"not packed at all")
        with pytest.raises(DataError, match="cannot be unpacked"):
            read(path)


def test_a_truncated_gz_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CONTENT * 100, mtime=0)[:-9])
    with pytest.raises(DataError, match="damaged, incomplete or misnamed"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b""), ("a.csv.gz", gzip.compress(b"", mtime=0))]
)
def test_an_empty_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.csv.* is empty"):
        read(path)


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"no known format.*\.csv, \.tsv"):
        table_format(path)


def test_a_missing_file_gets_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_bytes(CONTENT)
    with pytest.raises(DataError, match=r"Did you mean .*reviews\.csv"):
        read(tmp_path / "review.csv")


def test_a_wrong_encoding_names_file_line_byte_and_remedy(tmp_path: Path) -> None:
    content = "text,label\nfine,1\ncafé,2\n".encode("latin-1")
    path = written(tmp_path / "a.csv", content)
    with pytest.raises(DataError) as raised:
        read(path)
    message = str(raised.value)
    assert "a.csv is not UTF-8: line 3 holds byte 0xE9 (byte 22" in message
    assert "`encoding='windows-1252'`" in message
    assert "café" in message
    assert "café".encode() in read(path, "latin-1")


def test_an_unknown_encoding_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no encoding called 'utf9'"):
        read(written(tmp_path / "a.csv", b"x"), "utf9")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_and_line_ends_vanish(tmp_path: Path, encoding: str) -> None:
    content = "text\r\né\r\nb\rc\r\n".encode(encoding)
    path = written(tmp_path / "a.csv", content)
    assert read(path) == read(path, encoding) == "text\né\nb c\n".encode()


def test_old_mac_line_ends_are_line_ends(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.csv", b"text\rone\r")) == b"text\none\n"


TEXTS = {
    "Latin": "text,label\nIt was très good,pos\n" * 20,
    "Cyrillic": "текст,метка\nочень хороший фильм,да\n" * 20,  # noqa: RUF001
    "Chinese": "文本,标签\n这部电影非常好看我很喜欢它,好\n" * 20,
}
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("named", [None, "latin-1"])
def test_a_wide_encoding_without_its_mark_is_told(
    tmp_path: Path, script: str, kind: str, named: str | None
) -> None:
    """Read as UTF-8, its letters would have zeros between them."""
    path = written(tmp_path / "a.csv", TEXTS[script].encode(kind))
    with pytest.raises(DataError, match=kind.upper()) as fault:
        read(path, named)
    assert f"`encoding='{kind}'`" in str(fault.value)
    assert read(path, kind) == TEXTS[script].encode()
    assert read(path, kind[:6]) == TEXTS[script].encode()


@pytest.mark.parametrize("kind", ["utf-32", "utf-32-be", "utf-16-be"])
def test_the_mark_of_a_wide_encoding_is_known(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path / "a.csv", f"\ufeff{TEXTS['Chinese']}".encode(kind))
    assert read(path) == TEXTS["Chinese"].encode()
    if kind == "utf-32":
        with pytest.raises(DataError, match="looks like UTF-32, not UTF-16"):
            read(path, "utf-16")


def test_a_few_zeros_are_text(tmp_path: Path) -> None:
    content = b"a text with a zero \x00 in it,pos\n" + CONTENT * 20
    assert read(written(tmp_path / "a.csv", content)) == content


@pytest.mark.parametrize("name", ["undefined", "rot13", "nonsense", "utf\0"])
def test_what_is_no_encoding_of_text_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="There is no encoding called"):
        read(written(tmp_path / "a.csv", CONTENT), name)


def test_utf_16_may_lack_its_mark_where_it_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "é\n".encode("utf-16-le"))
    assert read(path, "utf-16") == "é\n".encode()
    with pytest.raises(DataError, match="is not UTF-16"):
        read(written(path, b"\xff\xfea\0b"))


def test_suffix_and_stem_look_through_the_packing() -> None:
    assert table_suffix("train.TSV.gz") == ".tsv"
    assert table_suffix("train.iob1.gz") is None
    assert table_stem("train.tsv.gz") == "train"
    assert table_stem("train.iob1.txt.gz") == "train.iob1"
    assert table_stem("dev.zip") == "dev"


def test_what_cannot_be_read_twice_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path / "folder.csv")


def test_a_link_in_a_circle_does_not_suggest_itself(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(DataError, match="is a link to nothing, or to itself"):
        table_format(tmp_path / "a.csv")
