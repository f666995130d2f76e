from pathlib import Path

import pytest

from totune.data.conll import is_conll, is_words_only, read_conll
from totune.data.readers import read_table
from totune.data.tables import SourceTable, read_words
from totune.errors import DataError

TWO_DOCUMENTS = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

Bonn NNP B-NP B-LOC

-DOCSTART- -X- -X- O
Peter NNP B-NP B-PER
"""


def read(text: str) -> SourceTable:
    return read_conll(lines(text), Path("a.conll"))


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def lists(table: SourceTable, column: str) -> list[tuple[str, ...] | None]:
    return [read_words(cell) for cell in table.columns[column]]


def test_sentences_and_documents() -> None:
    table = read(TWO_DOCUMENTS)
    assert list(table.columns) == ["tokens", "pos", "chunk", "tags", "document"]
    assert lists(table, "tokens") == [("EU", "rejects"), ("Bonn",), ("Peter",)]
    assert lists(table, "tags") == [("B-ORG", "O"), ("B-LOC",), ("B-PER",)]
    assert table.columns["document"] == ["1", "1", "2"]
    assert (table.rows, table.unit, table.document) == ([3, 6, 9], "line", "document")
    assert (table.ragged, table.remarks.warnings) == ((), [])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("EU", ["tokens"]),
        ("EU O", ["tokens", "tags"]),
        ("EU NNP O", ["tokens", "column2", "tags"]),
        ("EU NNP B-NP O", ["tokens", "pos", "chunk", "tags"]),
        ("EU a b c O", ["tokens", "column2", "column3", "column4", "tags"]),
    ],
)
def test_the_names_of_columns(line: str, names: list[str]) -> None:
    table = read(f"{line}\n{line}\n\n{line}\n")
    assert list(table.columns) == names
    assert table.document is None


def test_tabs_let_words_hold_spaces() -> None:
    table = read("New York\tB-LOC\nis\tO\n\n1 1/2 \tO\n")
    assert lists(table, "tokens") == [("New York", "is"), ("1 1/2",)]


def test_tabs_and_spaces_may_be_mixed() -> None:
    assert lists(read("EU NNP\tB-ORG \nis  VB\tO\n"), "tags") == [("B-ORG", "O")]


def test_a_hash_is_a_word_where_it_has_tags() -> None:
    text = "# id 1\n# text = # 5\n# O\n5 O\n\n# newpar\n\n# O\n"
    table = read(text)
    assert lists(table, "tokens") == [("#", "5"), ("#",)]
    assert table.rows == [3, 8]
    assert table.ragged == ()


def test_malformed_lines_cost_their_sentence_and_are_named() -> None:
    table = read("EU O\nrejects\n\nBonn O\nis O far\n\n" + "fine O\n\n" * 5)
    assert len(table) == 5
    assert table.ragged == (2, 5)
    assert table.remarks.warnings == [
        "a.conll: 2 lines without the usual 2 fields (lines 2, 5); "
        "2 of 7 sentences left out for them.",
    ]


def test_mostly_malformed_lines_are_an_error() -> None:
    with pytest.raises(DataError, match=r"2 lines without.*\(lines 2, 7\), in 2 of 3 sentences"):
        read("EU O\nrejects\n\nBonn O\n\nfine O\na b c O\n")


@pytest.mark.parametrize("text", ["\n\n", "-DOCSTART- O\n", "# only a comment\n"])
def test_no_sentence_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match=r"a\.conll holds no sentences"):
        read(text)


@pytest.mark.parametrize(
    ("text", "recognised"),
    [
        (TWO_DOCUMENTS, True),
        ("\n-DOCSTART-\n\nEU\nrejects\n", True),
        ("EU B-ORG\nrejects O\n\nBonn B-LOC\n", True),
        ("New York\tB-LOC\nis\tO\n\n", True),
        ("# id = 1\nEU B-ORG\nrejects O\nit O\nand O\n\n", True),
        ("EU B-ORG\nrejects O\n", False),  # no blank line: a table, for all one can tell
        ("a good film\t1\nnot one\t0\n\nfine\t1\n", False),
        ("One line of text.\n\nAnother one, longer.\n", False),
        ("EU NNP\nrejects VBZ\n\nBonn NNP\n", False),  # parts of speech need the suffix .conll
        ("text\tlabel\na\tO\n\nb\tO\n", False),
        ("", False),
    ],
)
def test_recognition_by_content(text: str, recognised: bool) -> None:
    assert is_conll(lines(text)) is recognised


@pytest.mark.parametrize(
    ("text", "recognised"),
    [
        ("EU\nrejects\nit\n\nBonn\nagrees\n", True),
        ("EU\n\nBonn\n\nParis\n", False),
        ("EU rejects it\n\nBonn\n", False),
        ("EU\nrejects\n", False),
        ("", False),
    ],
)
def test_words_without_tags(text: str, recognised: bool) -> None:
    assert is_words_only(lines(text)) is recognised


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.conll", "a.bio", "a.iob", "a.iobes"])
def test_readers_find_the_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TWO_DOCUMENTS.replace("\n", "\r\n").encode())
    assert lists(read_table(path), "tokens")[0] == ("EU", "rejects")


@pytest.mark.shared
def test_conll_2003(shared: Path) -> None:
    table = read_table(shared / "data" / "conll2003" / "dev.txt.gz")
    assert len(table) == 3250
    assert len(set(table.columns["document"])) == 216
    assert sum(len(words or ()) for words in lists(table, "tokens")) == 51362
    assert sum(tag[0] == "B" for tags in lists(table, "tags") for tag in tags or ()) == 5942
    assert table.remarks.warnings == []
