import pytest

from totune.data.examples import Columns
from totune.data.extraction import MAX_CHARACTERS, extract, has_labels
from totune.data.tables import Cell, Remarks, SourceTable
from totune.errors import DataError

COLUMNS = Columns("text", "label")


def table(**columns: list[Cell]) -> SourceTable:
    count = len(next(iter(columns.values())))
    return SourceTable("a.csv", columns, range(2, count + 2), unit="line")


def test_missing_and_empty_texts_are_left_out_with_their_lines() -> None:
    remarks = Remarks()
    read = extract(table(text=["a", None, " \t", "b", ""], label=list("xxyyy")), COLUMNS, remarks)
    assert read.texts == ("a", "b")
    assert read.labels == ("x", "y")
    assert read.rows == (2, 5)
    assert remarks.warnings == ["a.csv: 3 rows without text in 'text', left out (lines 3, 4, 6)."]


def test_missing_labels_are_left_out_with_their_lines() -> None:
    remarks = Remarks()
    read = extract(table(text=list("abc"), label=["x", None, " "]), COLUMNS, remarks)
    assert read.texts == ("a",)
    assert remarks.warnings == ["a.csv: 2 rows without a usable 'label', left out (lines 3, 4)."]


def test_labels_that_say_there_is_none_are_asked_about() -> None:
    remarks = Remarks()
    labels: list[Cell] = ["x", "N/A", "NaN", "y", "N/A"]
    read = extract(table(text=list("abcde"), label=labels), COLUMNS, remarks)
    assert read.labels == ("x", "N/A", "NaN", "y", "N/A")
    assert remarks.warnings == [
        f"a.csv: the label of {rows} is the word {word!r} ({lines}), which is read as a class. If "
        "it means that there is no label, empty these cells, and the rows are left out; if it is "
        "a class, a name of its own says so."
        for rows, word, lines in (("2 rows", "N/A", "lines 3, 6"), ("1 row", "NaN", "line 4"))
    ]


def test_a_pair_needs_both_texts() -> None:
    columns = Columns("text", "label", pair="other")
    remarks = Remarks()
    read = extract(table(text=["a", "b"], other=["c", ""], label=list("xy")), columns, remarks)
    assert read.pairs == ("c",)
    assert remarks.warnings == [
        "a.csv: 1 row without text in 'text' or 'other', left out (line 3)."
    ]


def test_long_texts_are_cut_and_counted() -> None:
    remarks = Remarks()
    read = extract(table(text=["a" * 200_000, "b"], label=list("xy")), COLUMNS, remarks)
    assert len(read.texts[0]) == MAX_CHARACTERS == 100_000
    assert remarks.warnings == ["a.csv: 1 text, cut to the first 100,000 characters (line 2)."]


def test_half_a_surrogate_pair_becomes_a_replacement_mark() -> None:
    remarks = Remarks()
    read = extract(table(text=["a \ud83d b", "\ud83d\ude00"], label=list("xy")), COLUMNS, remarks)
    assert read.texts == ("a \ufffd b", "\U0001f600")


def test_no_usable_row_is_an_error() -> None:
    with pytest.raises(DataError, match=r"no usable row.*2 rows without text"):
        extract(table(text=["", None], label=list("xy")), COLUMNS, Remarks())


def test_scores_are_numbers_and_what_is_none_is_left_out() -> None:
    columns = Columns("text", "label", task="regression")
    remarks = Remarks()
    read = extract(
        table(text=list("abcde"), label=["1.5", "n/a", "-2e1", "1e999", "1e308"]), columns, remarks
    )
    assert read.labels == (1.5, -20.0)
    assert "3 rows without a usable 'label', left out (lines 3, 5, 6)" in remarks.warnings[0]


def test_regression_on_words_is_an_error() -> None:
    columns = Columns("text", "label", task="regression")
    with pytest.raises(DataError, match=r"needs numbers, but column 'label'.*'good'"):
        extract(table(text=["a"], label=["good"]), columns, Remarks())


def test_whole_number_classes_agree_however_written() -> None:
    remarks = Remarks()
    read = extract(table(text=list("abc"), label=["1.0", "1", "2.5"]), COLUMNS, remarks)
    assert read.labels == ("1", "1", "2.5")


@pytest.mark.parametrize(
    ("columns", "labelled"),
    [
        ({"text": ["a", "b"]}, False),
        ({"text": ["a", "b"], "label": ["", None]}, False),
        ({"text": ["a", "b"], "label": ["-1", "-1"]}, False),
        ({"text": ["a", "b"], "label": ["x", "x"]}, True),
        ({"text": ["a", "b"], "label": ["-1", "x"]}, True),
    ],
)
def test_unlabelled_splits_are_recognised(columns: dict[str, list[Cell]], labelled: bool) -> None:
    assert has_labels(table(**columns), COLUMNS, frozenset({"x", "y"})) is labelled
