"""Rows of every format come one after the other, and what cannot be read is named."""

import gzip
import json
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.extraction.conftest import some_texts, write_texts

from totune.data import delimited
from totune.data.files import table_stem, table_suffix
from totune.data.readers import read_table
from totune.errors import DataError
from totune.extraction.corpus import open_texts

TEXTS = some_texts(30)
ROWS = [{"number": at, "text": text, "label": None} for at, text in enumerate(TEXTS)]


def texts_of(path: Path | str, **named: Any) -> list[str]:
    return [line.text for line in open_texts(path, **named)]


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path) -> Path:
    """The rows of `ROWS`, as the name says."""
    name = path.name
    if ".parquet" in name:
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=7)
        return path
    tabs = "number\ttext\n" + "".join(f"{at}\t{text}\n" for at, text in enumerate(TEXTS))
    content = {
        ".csv": tabs.replace("\t", ","),
        ".tsv": tabs,
        ".txt": "".join(f"{text}\n" for text in TEXTS),
        ".jsonl": lines_of(ROWS),
    }[Path(table_stem(name) + (table_suffix(name) or "")).suffix].encode()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(path.stem, content)
        return path
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return path


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.tsv.gz", "a.txt", "a.txt.xz", "a.csv.zip", "a.jsonl", "a.jsonl.gz", "a.parquet"],
)
def test_every_format_gives_the_same_texts(tmp_path: Path, name: str):
    assert texts_of(write(tmp_path / name)) == TEXTS


def test_only_parquet_tells_how_many_rows_there_are(tmp_path: Path):
    assert open_texts(write(tmp_path / "a.parquet")).total == 30
    assert open_texts(write(tmp_path / "a.csv")).total is None


def test_kept_cells_are_text_as_it_was_written(tmp_path: Path):
    for name in ("a.jsonl", "a.parquet"):
        corpus = open_texts(write(tmp_path / name), keep=["number", "label"])
        assert [line.kept for line in corpus][:2] == [("0", None), ("1", None)]


CSV = """id;review;stars
1;"a text; with ""quotes"" and
two lines of it";4
2;plain words follow here;5
3;"an inch is 2.5" wide or so;1
4;  space around it  ;2
"""


def test_a_csv_file_is_read_as_whole_files_are(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text(CSV.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    whole = read_table(path).columns["review"]
    assert texts_of(path) == [(cell or "").strip() for cell in whole]
    assert len(whole) == 4


def test_a_quote_that_never_ends_costs_its_own_row_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delimited, "MOST_LINES", 50)
    rows = ['1,"never ends', *(f"{at},the text number {at}" for at in range(2, 3000))]
    path = tmp_path / "a.csv"
    path.write_text("id,text\n" + "\n".join(rows), encoding="utf-8")
    found = texts_of(path)
    assert len(found) == 2999
    assert found[:2] == ['"never ends', "the text number 2"]


def test_without_a_header_columns_are_numbered(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{at},a longer text number {at}\n" for at in range(5)))
    assert open_texts(path).columns.text == "column2"
    assert len(texts_of(path)) == 5


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n1,one\n2,two\n3,a,b\n", r"a.csv line 4 has 3 fields, not 2"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', r"a.jsonl line 2 is not JSON: Expecting value"),
        ("a.jsonl", '{"text": "a"}\n["b"]\n', r"a.jsonl line 2 is a list, not an object"),
        ("a.csv", "", r"a.csv is empty"),
        ("a.csv", "id,text\n", r"a.csv holds no rows"),
        ("a.json", "[]", r"a.json cannot be read row by row: its name should end in"),
        ("a.xls", "1", r"a.xls cannot be read row by row"),
        ("a.parquet", "nothing", r"a.parquet cannot be read as parquet"),
        (
            "a.csv.gz",
            "not packed",
            r"a.csv.gz cannot be unpacked .*incomplete or misnamed",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, name: str, content: str, message: str):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        texts_of(path)


def test_a_byte_that_does_not_fit_is_named_with_its_line(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"plain\n" * 3000 + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"a.txt is not UTF-8: line 3,001 holds byte 0xE9"):
        texts_of(path)
    assert texts_of(path, encoding="windows-1252")[-1] == "café"


def test_an_encoding_that_is_named_may_have_a_mark(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("größer\nkleiner\n", encoding="utf-16")
    assert texts_of(path, encoding="utf-16") == ["größer", "kleiner"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str):
    path = tmp_path / "a.txt"
    path.write_text("größer\nkleiner\n", encoding=encoding)
    assert texts_of(path) == ["größer", "kleiner"]


def test_a_txt_file_is_a_table_if_its_first_line_names_the_text(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("id\treview\n1\tgood film\n2\tbad film\n")
    assert texts_of(path, text="review") == ["good film", "bad film"]
    assert texts_of(path)[0] == "id\treview"


def test_the_files_of_a_folder_follow_each_other(tmp_path: Path):
    for at in range(3):
        write_texts(tmp_path / f"part-{at}.csv", TEXTS[10 * at : 10 * (at + 1)])
    (tmp_path / "README.md").write_text("no data")
    corpus = open_texts(tmp_path)
    assert [line.text for line in corpus] == TEXTS
    assert "of 3 files in the order of their names: part-0.csv, part-1.csv" in corpus.notes[0]


def test_a_file_of_a_folder_without_the_column_is_named(tmp_path: Path):
    write_texts(tmp_path / "a.csv", TEXTS)
    (tmp_path / "b.csv").write_text("number,words,label\n1,some words here,a\n")
    with pytest.raises(DataError, match=r"b.csv has no column 'text'"):
        texts_of(tmp_path)


@pytest.mark.parametrize("option", ["text", "pair", "keep"])
def test_a_column_that_is_not_there_is_named(tmp_path: Path, option: str):
    named = {option: ["lable"] if option == "keep" else "lable"}
    with pytest.raises(DataError, match=rf"no column 'lable' \(`{option}`\). Did you mean 'label'"):
        open_texts(write_texts(tmp_path / "a.csv", TEXTS), **named)


def test_a_pair_is_found_by_its_names(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_text("premise\thypothesis\n" + "some words here\tother words there\n" * 3)
    columns = open_texts(path).columns
    assert (columns.text, columns.pair) == ("premise", "hypothesis")


def test_what_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(DataError, match="There is no file or folder"):
        open_texts(tmp_path / "b.csv")
    with pytest.raises(DataError, match="holds no table"):
        open_texts(tmp_path)


def hub_of(rows: Iterator[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Has the hub hold one dataset; returns what it is asked for."""
    asked: dict[str, Any] = {}
    names = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})

    def load(name: str, config: str | None, **options: Any) -> datasets.IterableDataset:
        asked.update(options, name=name)
        return datasets.IterableDataset.from_generator(rows, features=features)

    monkeypatch.setattr(datasets, "load_dataset", load)
    return asked


def test_a_dataset_of_the_hub_is_streamed(monkeypatch: pytest.MonkeyPatch):
    def rows() -> Iterator[dict[str, Any]]:
        return ({"text": text, "label": at % 2} for at, text in enumerate(TEXTS))

    asked = hub_of(rows, monkeypatch)
    lines = list(open_texts("hub:owner/name", keep=["label"]))
    assert asked == {"name": "owner/name", "split": "train", "streaming": True}
    assert [line.text for line in lines] == TEXTS
    assert [line.kept for line in lines[:2]] == [("no",), ("yes",)]


def test_a_hub_that_fails_on_the_way_is_told(monkeypatch: pytest.MonkeyPatch):
    def rows() -> Iterator[dict[str, Any]]:
        yield {"text": "a text", "label": 0}
        raise ConnectionError("the line is cut")

    hub_of(rows, monkeypatch)
    with pytest.raises(DataError, match="hub:name train cannot be read further: the line is cut"):
        open_texts("hub:name")


def test_local_files_ask_no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    assert len(texts_of(write(tmp_path / "a.parquet"))) == 30
