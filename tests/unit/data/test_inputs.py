from pathlib import Path

import pytest

from totune.data.examples import Columns, Examples
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
