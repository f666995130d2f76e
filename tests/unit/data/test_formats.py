"""Files beyond csv, jsonl and parquet, and texts that are made of several columns."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest

from totune.data.columns import find_columns
from totune.data.examples import Columns
from totune.data.inputs import read_inputs
from totune.data.readers import read_table
from totune.data.sources import load_dataset
from totune.errors import DataError
from totune.extraction.corpus import open_texts

ROWS = [
    {"title": f"Item {i}", "body": f"is {'good' if i % 2 else 'bad'} really", "label": str(i % 2)}
    for i in range(30)
]


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_list_inside_a_json_object_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", {"version": "1.1", "data": ROWS, "tags": ["x"]})
    table = read_table(path)
    assert table.columns["title"][1] == "Item 1"
    assert table.remarks.notes == [f"{path}: rows are read from the list 'data'."]
    with pytest.raises(DataError, match=r"several lists of rows \(train, test\): write each"):
        read_table(written(tmp_path / "b.json", {"train": ROWS, "test": ROWS}))
    one = written(tmp_path / "c.json", ROWS[0])  # an object per line, and one line
    assert len(read_table(one)) == 1


def test_a_saved_dataset_is_a_folder_of_splits(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list(ROWS)
    rows.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=rows, test=rows.select(range(10))).save_to_disk(tmp_path / "two")
    assert load_dataset(tmp_path / "one", text="body").name == "one"
    assert len(load_dataset(tmp_path / "two", text="body").test) == 10
    (tmp_path / "two" / "dataset_dict.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as a saved dataset"):
        load_dataset(tmp_path / "two")


def test_the_first_sheet_of_excel_is_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    for row in ROWS:
        book.active.append([row["body"], int(row["label"])])
    book.create_sheet("notes")
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx")
    assert table.columns["label"][:2] == ["0", "1"]
    assert table.rows[0] == 2
    assert "only the first of 2 sheets is read, 'Sheet'" in table.remarks.notes[0]
    (tmp_path / "b.xlsx").write_text("no book", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as Excel"):
        read_table(tmp_path / "b.xlsx")


def test_excel_without_its_library_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match=r"pip install 'totune\[excel\]'; or save the sheet as csv"):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize("named", ["title,body", "1, 2"])
def test_several_columns_make_one_text(tmp_path: Path, named: str) -> None:
    path = written(tmp_path / "a.json", ROWS)
    found = load_dataset(path, text=named)
    assert found.columns == Columns("title,body", "label")
    assert found.train.texts[0].startswith("Item ")
    assert "\nis " in found.train.texts[0]
    assert read_inputs(path, found.columns).texts[1] == "Item 1\nis good really"
    with pytest.raises(DataError, match=r"no column 'bodi' \(`text`\). Did you mean 'body'"):
        find_columns(read_table(path), text="title,bodi")
    with pytest.raises(DataError, match="from one column of text"):
        open_texts(written(tmp_path / "b.jsonl", ROWS[0]), "title,body")


def test_a_column_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    rows = [{"a,b": row["body"], "label": row["label"]} for row in ROWS]
    assert load_dataset(written(tmp_path / "a.json", rows), text="a,b").columns.text == "a,b"


def test_the_likely_encoding_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nЛюди,a\n".encode("cp1251"))
    found = SimpleNamespace(best=lambda: SimpleNamespace(encoding="cp1251"))
    module = SimpleNamespace(from_bytes=lambda content: found)
    monkeypatch.setitem(sys.modules, "charset_normalizer", module)
    with pytest.raises(DataError, match="`encoding='cp1251'`, which would read it as 'Люди"):
        read_table(path)
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    with pytest.raises(DataError, match="`encoding='windows-1252'`"):
        read_table(path)
