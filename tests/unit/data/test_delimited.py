import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.data.delimited import Dialect, Record, looks_like_data


def read(text: str, commas: bool = True) -> list[Record]:
    lines = text.removesuffix("\n").split("\n")
    return list(Dialect.of(lines, commas).records(lines))


def fields(text: str, commas: bool = True) -> list[list[str]]:
    return [record.fields for record in read(text, commas)]


CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1, max_size=20
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=20))
def test_what_csv_writes_is_read_back(rows: list[tuple[str, str, str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([("text", "label", "more"), *rows])
    records = read(file.getvalue())
    assert [record.fields for record in records[1:]] == [list(row) for row in rows]
    assert not any(record.unbalanced for record in records)


def test_quoted_line_breaks_keep_the_line_numbers_of_an_editor() -> None:
    records = read('text,label\n"one\ntwo, three",1\nfour,2\n')
    assert records[1].fields == ["one\ntwo, three", "1"]
    assert [record.line for record in records] == [1, 2, 4]


def test_an_unbalanced_quote_costs_no_other_row() -> None:
    records = read('text,label\n"open,1\nb,2\nc "d",3\n"e, f",4\n"""g""",5\n')
    assert [record.fields for record in records[1:]] == [
        ['"open', "1"],
        ["b", "2"],
        ['c "d"', "3"],
        ["e, f", "4"],
        ['"g"', "5"],
    ]
    assert [record.line for record in records if record.unbalanced] == [2]


def test_a_quote_open_to_the_end_costs_no_other_row() -> None:
    records = read('text,label\n"open,1\nb,2\n')
    assert [record.fields for record in records[1:]] == [['"open', "1"], ["b", "2"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["text", "label"], ["a, b; c", "1"], ["d | e", "2"], ["f", "3"]]
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    assert fields(file.getvalue()) == rows


def test_a_field_of_200_000_characters_is_read_and_the_global_limit_kept() -> None:
    before = csv.field_size_limit()
    long = "x" * 200_000
    assert fields(f'text,label\n"{long}",1\n')[1] == [long, "1"]
    assert csv.field_size_limit() == before


def test_literal_quotes_in_a_tsv_stay() -> None:
    text = 'Quality\t#1 String\t#2 String\n1\t" He said .\tShe said . "\n0\t"A" b\t"c" "d"\n'
    assert fields(text, commas=False)[1:] == [
        ["1", '" He said .', 'She said . "'],
        ["0", '"A" b', '"c" "d"'],
    ]


def test_one_wholly_quoted_sentence_in_a_tsv_is_literal() -> None:
    text = 'sentence\tlabel\n"Hello there"\t1\nplain\t0\nplain too\t0\n'
    assert fields(text, commas=False)[1] == ['"Hello there"', "1"]


@pytest.mark.parametrize(
    "text",
    [
        'sentence\tlabel\n"He said ""no"""\t1\nplain\t0\n',  # doubled quotes
        'sentence\tlabel\n"He said ""no"""\t1\n"tab\there"\t0\n"two\nlines"\t1\n',
    ],
)
def test_csv_quoting_in_a_tsv_is_found(text: str) -> None:
    assert Dialect.of(text.removesuffix("\n").split("\n"), commas=False).quoted
    records = fields(text, commas=False)
    assert records[1] == ['He said "no"', "1"]
    assert {len(record) for record in records} == {2}


def test_a_wholly_quoted_column_is_csv_quoting() -> None:
    records = fields('"sentence"\t"label"\n"one"\t"a"\n"two"\t"b"\n', commas=False)
    assert records == [["sentence", "label"], ["one", "a"], ["two", "b"]]


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        ([["gj04", "1", "", "Our friends"], ["gj04", "0", "*", "It"]], True),  # a number
        ([["b", "Oil spill"], ["e", "It's"], ["b", "Prices"], ["b", "More"]], True),  # a label
        ([["what do they say when they pray to god", "society"], ["hm", "science"]], True),  # long
        ([["v1", "v2"], ["ham", "Go"], ["spam", "Win"]], False),
        ([["text", "label"], ["a text", "label"], ["b", "label"]], True),
        ([["How do you feel about the product today?", "sentiment"], ["a", "b"]], False),
    ],
)
def test_headers_are_told_from_rows(rows: list[list[str]], data: bool) -> None:
    assert looks_like_data(rows) is data
