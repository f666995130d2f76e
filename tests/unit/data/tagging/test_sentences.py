import pytest

from totune.data.examples import Columns, Examples
from totune.data.tables import Cell, Remarks, SourceTable, table_of
from totune.data.tagging.sentences import extract_tagged, rewrite, scheme_note
from totune.errors import DataError

COLUMNS = Columns("tokens", "tags", task="tagging")
WITH_DOCUMENTS = Columns("tokens", "tags", task="tagging", document="doc")


def table(*rows: tuple[object, object], documents: list[str | None] | None = None) -> SourceTable:
    named = [{"tokens": words, "tags": tags} for words, tags in rows]
    whole = [
        row if documents is None else {**row, "doc": documents[at]} for at, row in enumerate(named)
    ]
    return table_of(whole, "a.jsonl", range(1, len(rows) + 1), "line")


def test_words_and_tags() -> None:
    remarks = Remarks()
    read = extract_tagged(table((["New", "York"], ["B", "I"]), (["EU"], [3])), COLUMNS, remarks)
    assert read == Examples(
        texts=("New York", "EU"),
        labels=(("B", "I"), ("3",)),
        rows=(1, 2),
        words=(("New", "York"), ("EU",)),
    )
    assert (remarks.warnings, remarks.notes) == ([], [])


def test_what_cannot_be_used_is_left_out_with_its_line() -> None:
    rows = [(["a"], ["O"]), ([], []), (None, None), (["b"], None), (["c"], [None])]
    remarks = Remarks()
    read = extract_tagged(table(*rows), COLUMNS, remarks)
    assert read.rows == (1,)
    assert remarks.notes == [
        "a.jsonl: 2 sentences without words in 'tokens', left out (lines 2, 3)."
    ]
    assert remarks.warnings == [
        "a.jsonl: 2 sentences without usable 'tags', left out (lines 4, 5)."
    ]


def test_empty_words_keep_their_place() -> None:
    remarks = Remarks()
    read = extract_tagged(table((["a", " ", ""], ["O", "O", "B"])), COLUMNS, remarks)
    assert read.words == (("a", "_", "_"),)
    assert remarks.warnings == ["a.jsonl: 1 sentence with an empty word, read as '_' (line 1)."]


def test_lengths_that_differ_are_an_error() -> None:
    rows = [(["a"], ["O"]), (["a", "b"], ["O"]), (["a"], ["O", "O"])]
    message = r"a\.jsonl line 2 has 2 words in 'tokens' but 1 tag in 'tags' \(1 row more like it\)"
    with pytest.raises(DataError, match=message):
        extract_tagged(table(*rows), COLUMNS, Remarks())


def test_a_column_without_lists_is_an_error() -> None:
    with pytest.raises(DataError, match="column 'tags' holds no lists of tags"):
        extract_tagged(table((["a"], "O")), COLUMNS, Remarks())


def test_no_usable_row_is_an_error() -> None:
    with pytest.raises(DataError, match=r"no usable row.*1 sentence without words"):
        extract_tagged(table(([], [])), COLUMNS, Remarks())


def test_documents_are_numbered_and_brought_together() -> None:
    rows = [([word], ["O"]) for word in "abcd"]
    remarks = Remarks()
    read = extract_tagged(table(*rows, documents=["x", "y", "x", None]), WITH_DOCUMENTS, remarks)
    assert read.documents == (0, 0, 1, 2)
    assert read.texts == ("a", "c", "b", "d")


def test_tags_are_rewritten_and_faults_placed() -> None:
    examples = Examples(
        ("a b", "c"), (("O", "I-PER"), ("B-PER",)), rows=(3, 7), words=(("a", "b"), ("c",))
    )
    remarks = Remarks()
    written = rewrite(examples, table((["a"], ["O"])), "iob2", "iobes", remarks)
    assert written.labels == (("O", "S-PER"), ("S-PER",))
    assert written.words == examples.words
    assert remarks.warnings == [
        "a.jsonl: 1 tag where IOB2 does not allow it (such as I-PER after O), in 1 sentence "
        "(line 3); read as conlleval reads them."
    ]


def test_a_tag_of_no_scheme_among_others_is_an_error() -> None:
    examples = Examples(("a",), (("PER",),), rows=(3,), words=(("a",),))
    with pytest.raises(DataError, match=r"a\.jsonl line 3: 'PER' is no tag of IOB2"):
        rewrite(examples, table((["a"], ["O"])), "iob2", "iob2", Remarks())


def test_the_scheme_is_said() -> None:
    assert scheme_note("tags", "iob2", "iob2") == "The tags in 'tags' follow IOB2."
    assert scheme_note("tags", "iob1", "iob2").endswith("follow IOB1; they are converted to IOB2.")
    assert "follow no scheme of spans (IOB1, IOB2, IOBES)" in scheme_note("pos", None, "iob2")


def test_a_row_whose_words_are_no_list_is_left_out_with_a_warning() -> None:
    cells: dict[str, list[Cell]] = {"tokens": ['["a"]', "a b"], "tags": ['["O"]', '["O", "O"]']}
    columns = Columns("tokens", "tags", task="tagging")
    remarks = Remarks()
    read = extract_tagged(SourceTable("a.jsonl", cells, [1, 2], unit="line"), columns, remarks)
    assert read.words == (("a",),)
    assert remarks.warnings == [
        "a.jsonl: 1 row without a list of words in 'tokens', left out (line 2).",
    ]
