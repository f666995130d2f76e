import gzip
import json
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from totune.data.readers import open_rows, read_table
from totune.errors import DataError


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.csv", 'text,label\n"a, b",x\nc,y\n'))
    assert table.columns == {"text": ["a, b", "c"], "label": ["x", "y"]}
    assert list(table.rows) == [2, 3]
    assert table.header


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.csv", "text,label\r\na,x\r\n".encode("utf-8-sig")))
    assert table.columns == {"text": ["a"], "label": ["x"]}


def test_txt_is_tab_separated(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.txt", "text\tlabel\na, b\tx\n"))
    assert table.columns == {"text": ["a, b"], "label": ["x"]}


def test_no_header_is_seen_and_said(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.tsv", "b\tone\ne\ttwo\nb\tthree\nb\tfour\n"))
    assert list(table.columns) == ["column1", "column2"]
    assert list(table.rows) == [1, 2, 3, 4]
    assert "no header line" in table.remarks.notes[0]


def test_ragged_rows_are_counted_and_left_out(tmp_path: Path) -> None:
    content = "text,label\na,x\nb\nc,y\nd,e,z\nf,x\ng,x\n"
    table = read_table(written(tmp_path / "a.csv", content))
    assert table.columns["text"] == ["a", "c", "f", "g"]
    assert list(table.rows) == [2, 4, 6, 7]
    assert table.ragged == (3, 5)
    assert table.remarks.warnings == [
        f"{tmp_path / 'a.csv'}: of 6 rows, 2 did not have 2 fields (lines 3, 5); left out.",
    ]


def test_mostly_ragged_rows_are_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,label\na,b,x\nc,d,y\ne,x\n")
    with pytest.raises(DataError, match=r"of 3 rows, 2 did not have 2 fields \(lines 2, 3\)"):
        read_table(path)


def test_an_unbalanced_quote_is_warned_of(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.csv", 'text,label\n"a,x\nb,y\n'))
    assert table.columns["text"] == ['"a', "b"]
    assert "quotes do not match up in 1 row (line 2)" in table.remarks.warnings[0]


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "text,label\n"), ("a.tsv", "\n\n"), ("a.jsonl", "\n")]
)
def test_a_file_without_rows_is_an_error(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(DataError, match="holds no rows"):
        read_table(written(tmp_path / name, content))


def test_unnamed_and_repeated_columns_get_names(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.csv", ",text,text,label\nr,a,b,x\ns,c,d,y\n"))
    assert list(table.columns) == ["column1", "text", "text.3", "label"]


def test_json_lines(tmp_path: Path) -> None:
    rows = [{"text": "ä", "label": 1}, {"text": None, "score": 0.5}, {"label": True, "text": [1]}]
    content = "\n\n".join(json.dumps(row) for row in rows)
    table = read_table(written(tmp_path / "a.jsonl", content))
    assert table.columns == {
        "text": ["ä", None, "[1]"],
        "label": ["1", None, "true"],
        "score": [None, "0.5", None],
    }
    assert list(table.rows) == [1, 3, 5]


def test_a_json_array(tmp_path: Path) -> None:
    table = read_table(written(tmp_path / "a.json", '[{"text": "a"},\n {"text": "b"}]'))
    assert table.columns == {"text": ["a", "b"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": \n', r"a\.jsonl line 2 is not JSON: .*column"),
        ('{"text": "a"}\n["b"]\n', r"a\.jsonl line 2 is a list, not an object"),
        ("9" * 5000, r"a\.jsonl line 1 is not JSON: Exceeds the limit"),
        ("[" * 100_000, r"a\.jsonl line 1 is not JSON: .*recursion"),
        ('[{"text": "a"}, 3]', r"a\.jsonl item 2 is a int, not an object"),
    ],
)
def test_broken_json_is_placed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(written(tmp_path / "a.jsonl", content))


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = {"text": ["a", None], "label": [1, 0], "score": [float("nan"), 0.5]}
    pq.write_table(pa.table(data), path)
    table = read_table(path)
    assert table.columns == {"text": ["a", None], "label": ["1", "0"], "score": [None, "0.5"]}
    assert list(table.rows) == [1, 2]


def test_values_of_parquet_are_text_without_quotes(tmp_path: Path) -> None:
    data = {
        "decimal": pa.array([Decimal("1.50")]),
        "date": pa.array([date(2020, 1, 31)]),
        "moment": pa.array([datetime(2020, 1, 31, 12, 30)]),
        "text": pa.array(["größer".encode()]),
        "bytes": pa.array([b"\xff\x00"]),
        "list": pa.array([[date(2020, 1, 31)]]),
    }
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    assert {
        name: cells[0] for name, cells in read_table(tmp_path / "a.parquet").columns.items()
    } == {
        "decimal": "1.50",
        "date": "2020-01-31",
        "moment": "2020-01-31T12:30:00",
        "text": "größer",
        "bytes": "ff00",
        "list": '["2020-01-31"]',
    }


def test_half_a_surrogate_pair_is_no_character(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", r'{"te\uD800xt": ["a\udfff", "\ud83d\ude00"]}')
    assert read_table(path).columns == {"te\ufffdxt": ['["a\ufffd", "😀"]']}


ROWS = [{"id": at, "text": f"a text, number {at}", "tags": ["O", "B-X"]} for at in range(1500)]
COMMAS = "id,text\n" + "".join(f'{row["id"]},"{row["text"]}"\n' for row in ROWS)
TABS = "id\ttext\n" + "".join(f"{row['id']}\t{row['text']}\n" for row in ROWS)
LINES = "\n".join(map(json.dumps, ROWS))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", COMMAS.encode()),
        ("a.csv.gz", gzip.compress(COMMAS.encode())),
        ("a.tsv", TABS.encode()),
        ("a.jsonl", LINES.encode()),
        ("a.json", json.dumps(ROWS).encode()),
        ("a.parquet", b""),
        ("a.parquet.gz", b""),
        ("a.conll", b"EU B-ORG\nrejects O\n\nBonn B-LOC\n" * 20),
    ],
)
def test_a_table_is_all_rows_of_its_reader(tmp_path: Path, name: str, content: bytes) -> None:
    if ".parquet" in name:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(ROWS), sink, row_group_size=400)
        content = sink.getvalue().to_pybytes()
        content = gzip.compress(content) if name.endswith(".gz") else content
    path = written(tmp_path / name, content)
    table, reader = read_table(path), open_rows(path)
    names = list(table.columns)
    columns = zip(table.rows, *table.columns.values(), strict=True)
    assert list(reader.rows(names)) == [(number, cells) for number, *cells in columns]
    assert list(reader.rows(names[::-1])) == [
        (number, cells[::-1]) for number, cells in reader.rows(names)
    ]
    assert reader.total in (None, len(table))
    assert reader.sample == reader.table(1000)
    assert list(reader.sample.rows) == list(table.rows[:1000])
    assert list(reader.sample.columns) == names


def test_a_damaged_parquet_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as parquet"):
        read_table(written(tmp_path / "a.parquet", b"PAR1 and nothing else"))


def test_a_parquet_with_broken_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["some words"] * 9}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"some words", b"some w\xe5rds"))
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as parquet"):
        read_table(path)


def test_100_000_rows_are_read_in_a_moment(tmp_path: Path) -> None:
    rows = "".join(f'"a text, number {i}, of some words",{i % 3}\n' for i in range(100_000))
    path = written(tmp_path / "a.csv", "text,label\n" + rows)
    start = time.perf_counter()
    assert len(read_table(path)) == 100_000
    assert time.perf_counter() - start < 10


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("mrpc/train.tsv.gz", 3668),
        ("mrpc/msr_paraphrase_train.txt.gz", 4076),
        ("qnli/dev.tsv.gz", 5463),
        pytest.param("sst2/train.tsv.gz", 67349, marks=pytest.mark.slow),
        ("cola/train.tsv.gz", 8551),
        ("news_aggregator/train.txt.gz", 10686),
        ("yahoo_answers_2class/train.csv.gz", 4000),
        ("disaster_tweets/train.csv.gz", 7613),
        ("cf_airline/train.csv.gz", 14640),
        pytest.param("qqp/train.tsv.gz", 31193, marks=pytest.mark.slow),
        ("mnli/dev_matched.tsv.gz", 9815),
    ],
)
def test_every_row_of_real_files_is_read(shared: Path, name: str, rows: int) -> None:
    table = read_table(shared / "data" / name)
    assert len(table) == rows
    assert table.remarks.warnings == []


@pytest.mark.shared
def test_literal_quotes_of_mrpc_stay(shared: Path) -> None:
    table = read_table(shared / "data" / "mrpc" / "dev.tsv")
    first = table.columns["#2 String"][0]
    assert first is not None
    assert first.startswith('" The foodservice pie business')
