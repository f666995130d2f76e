import pytest

from totune.data.tables import Cell, Table
from totune.data.word_lists import list_columns, read_tags, read_words


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('["EU", "rejects"]', ("EU", "rejects")),
        ("[0, 3, 1.5]", ("0", "3", "1.5")),
        ('["a", null]', ("a", "")),
        ("[]", ()),
        ("[laughs]", None),
        ('[["a"]]', None),
        ('"a"', None),
        ("[" * 100_000, None),
        (None, None),
        ("", None),
    ],
)
def test_words(cell: Cell, words: tuple[str, ...] | None) -> None:
    assert read_words(cell) == words


@pytest.mark.parametrize("cell", ['["O", null]', '["O", " "]', "O O", None])
def test_a_missing_tag_spoils_the_row(cell: Cell) -> None:
    assert read_tags(cell) is None


def test_columns_of_lists() -> None:
    columns: dict[str, list[Cell]] = {
        "words": ['["a", "b"]', None, '["c"]'],
        "numbers": ["[1, 2]", "[3]", "[4]"],
        "mixed": ['["a"]', "plain", None],
        "plain": ["a", "b", "c"],
        "empty": [None, None, None],
    }
    found = list_columns(Table("a.jsonl", columns, [1, 2, 3]))
    assert list(found) == ["words", "numbers"]
    assert (found["words"].worded, found["numbers"].worded) == (True, False)
    assert (found["words"].distinct, found["words"].mean_length) == (3, 1.5)
    assert found["words"].fits(found["numbers"])


def test_a_broken_cell_does_not_hide_a_column_of_lists() -> None:
    cells: list[Cell] = ['["a", "b"]', "a b", '["c"]']
    column = list_columns(Table("a.jsonl", {"words": cells}, [1, 2, 3]))["words"]
    assert column.lists == (("a", "b"), None, ("c",))
