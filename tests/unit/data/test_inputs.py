from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from totune.data.examples import Columns, Examples
from totune.data.inputs import read_texts
from totune.data.sources import read_inputs
from totune.errors import DataError

SINGLE = Columns("review", "stars")
PAIR = Columns("premise", "label", "hypothesis")


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_a_list_of_texts() -> None:
    assert read_inputs(["good", " "], SINGLE) == Examples(("good", ""), rows=(0, 1))


def test_a_list_of_pairs() -> None:
    assert read_inputs([("a", "b")], PAIR) == Examples(("a",), pairs=("b",), rows=(0,))


@pytest.mark.parametrize(
    ("texts", "columns", "message"),
    [
        ([], SINGLE, "the list is empty"),
        (["a", None], SINGLE, "Item 1 of the list is None, not a text"),
        (["a", 3], SINGLE, "Item 1 of the list is 3, not a text"),
        (["a"], PAIR, "Item 0 of the list is 'a', not a pair of texts"),
        ([("a", "b")], SINGLE, r"Item 0 of the list is \('a', 'b'\), not a text"),
    ],
)
def test_a_wrong_item_is_placed(texts: list[str], columns: Columns, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_inputs(texts, columns)


def test_a_text_file_holds_a_text_per_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "one\n\ntwo\twith a tab\n")
    assert read_inputs(path, SINGLE) == Examples(("one", "", "two\twith a tab"), rows=(1, 2, 3))


def test_a_text_file_of_pairs_has_tabs(tmp_path: Path) -> None:
    good = read_inputs(written(tmp_path / "a.txt", "one\ttwo\n"), PAIR)
    assert (good.texts, good.pairs) == (("one",), ("two",))
    with pytest.raises(DataError, match=r"1 line not of two texts with one tab.*\(line 2\)"):
        read_inputs(written(tmp_path / "b.txt", "one\ttwo\nthree\n"), PAIR)


def test_a_text_file_with_the_header_is_a_table(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "stars\treview\n5\tgood\n")
    assert read_inputs(path, SINGLE) == Examples(("good",), ("5",), rows=(2,))


def test_a_table_needs_no_labels_and_keeps_empty_texts(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,review\n1,good\n2,\n")
    assert read_inputs(path, SINGLE) == Examples(("good", ""), rows=(2, 3))


def test_labels_are_read_if_every_row_has_one(tmp_path: Path) -> None:
    scores = Columns("review", "stars", task="regression")
    full = written(tmp_path / "a.csv", "review,stars\ngood,4.5\nbad,1\n")
    assert read_inputs(full, scores).labels == (4.5, 1.0)
    assert read_inputs(full, SINGLE).labels == ("4.5", "1")
    partial = written(tmp_path / "b.csv", "review,stars\ngood,4.5\nbad,\n")
    assert read_inputs(partial, scores).labels is None


def test_a_table_of_one_column_is_read_whatever_its_name(tmp_path: Path) -> None:
    assert read_inputs(written(tmp_path / "a.csv", "text\ngood\n"), SINGLE).texts == ("good",)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,reviews\n1,good\n")
    with pytest.raises(DataError, match=r"no column 'review'.*Did you mean 'reviews'"):
        read_inputs(path, SINGLE)


def test_no_row_goes_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,review\n1,good\n2,bad,worse\n3,fine\n")
    with pytest.raises(DataError, match=r"1 row without the usual 2 fields \(line 3\)"):
        read_inputs(path, SINGLE)


def test_a_text_in_place_of_a_path_is_explained() -> None:
    with pytest.raises(DataError, match="Texts themselves are given as a list"):
        read_inputs("a great film", SINGLE)


def test_rows_without_labels_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\none,x\ntwo,\nthree,y\n", encoding="utf-8")
    columns = Columns("text", "label")
    assert read_inputs(path, columns).labels is None
    read = read_inputs(path, columns, labelled=True)
    assert (read.texts, read.labels) == (("one", "three"), ("x", "y"))


def test_lines_of_text_have_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    assert len(read_inputs(path, Columns("text", "label"), labelled=True)) == 0


NUMBERED = Columns("column2", "column1")  # of a file without header


def test_columns_of_a_file_can_be_others_than_those_of_training(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "id\tsentence\tgold\n1\tgood\tx\n2\tbad\ty\n")
    for named in ({"text": "sentence", "label": "gold"}, {"text": "2", "label": "3"}):
        read = read_inputs(path, NUMBERED, named=named)
        assert (read.texts, read.labels) == (("good", "bad"), ("x", "y"))
    pairs = read_inputs(path, PAIR, named={"text": "2", "pair": "3"})
    assert (pairs.texts, pairs.pairs) == (("good", "bad"), ("x", "y"))


def test_a_text_file_of_training_s_columns_is_a_table(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "m\tone\nm\ttwo\ne\tthree\n")
    assert read_inputs(path, NUMBERED).texts == ("one", "two", "three")
    alone = written(tmp_path / "b.txt", "one\ntwo\n")
    assert read_inputs(alone, NUMBERED).texts == ("one", "two")
    pairs = Columns("column2", "column1", "column3")
    two = written(tmp_path / "c.txt", "one\tother\n")
    assert read_inputs(two, pairs).pairs == ("other",)
    three = written(tmp_path / "d.txt", "0\tone\tother\n1\ttwo\tanother\n")
    assert read_inputs(three, pairs).pairs == ("other", "another")


def test_a_single_row_is_no_header_where_training_had_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "m,one\n")
    assert read_inputs(path, NUMBERED).texts == ("one",)
    with pytest.raises(DataError, match=r"no column 'column2'.*index, sentence"):
        read_inputs(written(tmp_path / "b.csv", "index,sentence\n0,one\n"), NUMBERED)


FRAME = pd.DataFrame({"id": [1, 2], "text": ["good", "bad"]})


@pytest.mark.parametrize(
    "texts", [["good", "bad"], FRAME["text"], FRAME["text"].to_numpy(), iter(["good", "bad"])]
)
def test_texts_in_memory(texts: Any) -> None:
    assert read_texts(texts, None, SINGLE).texts == ("good", "bad")


def test_pairs_in_memory() -> None:
    expected = Examples(("a",), pairs=("b",), rows=(0,))
    assert read_texts("a", "b", PAIR) == expected
    assert read_texts(["a"], ["b"], PAIR) == expected
    assert read_texts([("a", "b")], None, PAIR) == expected


@pytest.mark.parametrize(
    ("texts", "pairs", "columns", "message"),
    [
        (
            FRAME,
            None,
            SINGLE,
            "DataFrame has no column 'review'.* Its columns: id, text",
        ),
        ({"text": "a"}, None, SINGLE, r"text is 'a' \(str\), not a list, an array or a column"),
        (None, None, SINGLE, r"texts is None \(NoneType\), not a list of texts"),
        (b"good", None, SINGLE, "texts is b'good' .*not a list of texts"),
        ([None, 3.5], None, SINGLE, "Item 0 of the list is None, not a text"),
        (["a", float("nan")], None, SINGLE, "Item 1 of the list is nan, not a text"),
        (["a", "b"], ["c"], PAIR, "2 texts and 1 second text"),
        (["a"], "b", PAIR, "pairs is 'b' .*not a list of texts"),
        ("a", ["b"], PAIR, r"Item 0 of the list is \('a', \['b'\]\), not a pair"),
        ("a", None, PAIR, "Item 0 of the list is 'a', not a pair of texts"),
    ],
    ids=str,
)
def test_what_is_no_text_is_refused(texts: Any, pairs: Any, columns: Columns, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_texts(texts, pairs, columns)
