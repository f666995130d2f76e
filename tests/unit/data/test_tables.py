import pytest

from totune.data.tables import Cell, read_tags, read_words


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
