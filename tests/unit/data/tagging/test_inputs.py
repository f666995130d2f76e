import json
from pathlib import Path

import pytest

from totune.data.examples import Columns, Examples
from totune.data.sources import read_inputs
from totune.errors import DataError

COLUMNS = Columns("tokens", "tags", task="tagging", document="document")
TAGGED = "-DOCSTART- O\n\nMr O\nSmith I-PER\n\nRome I-LOC\n"


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_lists_of_words_and_sentences() -> None:
    read = read_inputs([["Mr", "Smith"], "in Rome, now", "", ("a", "")], COLUMNS)
    assert read == Examples(
        texts=("Mr Smith", "in Rome, now", "", "a _"),
        rows=(0, 1, 2, 3),
        words=(("Mr", "Smith"), ("in", "Rome,", "now"), (), ("a", "_")),
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "the list is empty"),
        ([["a"], 3], "Item 1 of the list is 3, neither a sentence nor a list of words"),
        ([["a", None]], r"Item 0 of the list is \['a', None\], neither"),
    ],
)
def test_a_wrong_item_is_placed(inputs: list[list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_inputs(inputs, COLUMNS)


@pytest.mark.parametrize("name", ["a.txt", "a.conll"])
def test_a_conll_file_with_tags(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, TAGGED)
    read = read_inputs(path, COLUMNS)
    assert read.words == (("Mr", "Smith"), ("Rome",))
    assert read.labels == (("O", "B-PER"), ("B-LOC",))
    assert read.documents == (0, 0)
    assert read.rows == (3, 6)
    assert read_inputs(path, COLUMNS, tag_scheme="iobes").labels == (("O", "S-PER"), ("S-LOC",))


@pytest.mark.parametrize("name", ["a.txt", "a.iob2"])
def test_a_conll_file_without_tags(tmp_path: Path, name: str) -> None:
    read = read_inputs(written(tmp_path / name, "Mr\nSmith\nleft\n\nRome\n"), COLUMNS)
    assert read.words == (("Mr", "Smith", "left"), ("Rome",))
    assert (read.labels, read.documents) == (None, None)


def test_a_text_file_holds_a_sentence_per_line(tmp_path: Path) -> None:
    read = read_inputs(written(tmp_path / "a.txt", "Mr Smith\n\n[1]\n"), COLUMNS)
    assert read.words == (("Mr", "Smith"), (), ("[1]",))
    assert read.rows == (1, 2, 3)


def test_jsonl_with_tokens(tmp_path: Path) -> None:
    rows = [{"tokens": ["Mr", "Smith"], "tags": ["O", "I-PER"]}, {"tokens": ["Rome"], "tags": None}]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_inputs(path, COLUMNS).labels is None
    path = written(tmp_path / "a.jsonl", json.dumps(rows[0]))
    assert read_inputs(path, COLUMNS).labels == (("O", "B-PER"),)


def test_tags_of_no_scheme_are_read_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conll", "Mr NNP\nleft VBD\n\n")
    assert read_inputs(path, COLUMNS).labels == (("NNP", "VBD"),)


def test_other_names_of_columns_are_understood(tmp_path: Path) -> None:
    columns = Columns("words", "ner_tags", task="tagging")
    read = read_inputs(written(tmp_path / "a.conll", TAGGED), columns)
    assert read.labels == (("O", "B-PER"), ("B-LOC",))
    path = written(tmp_path / "a.jsonl", '{"sentence": "Mr Smith"}\n')
    assert read_inputs(path, columns).words == (("Mr", "Smith"),)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.conll",
            "Mr O\nSmith\n\n" + "a O\n\n" * 3,
            r"1 row without the usual 2 fields \(line 2\)",
        ),
        ("a.jsonl", '{"words": ["a"], "id": 1}', r"no column 'tokens'"),
        ("a.jsonl", '{"tokens": ["a"], "tags": ["O", "O"]}', "line 1 has 1 word in 'tokens' but 2"),
    ],
)
def test_no_sentence_goes_missing(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_inputs(written(tmp_path / name, content), COLUMNS)


def test_a_single_tagged_sentence_is_not_a_sentence_a_line(tmp_path: Path) -> None:
    read = read_inputs(written(tmp_path / "a.txt", "EU NNP B-ORG\nrejects VBZ O\n"), COLUMNS)
    assert read.words == (("EU", "rejects"),)
    assert read.labels == (("B-ORG", "O"),)
