"""Reading corpora, and what is said of those that cannot be read."""

import gzip
import lzma
from pathlib import Path

import pytest

from totune.data.tables import SourceTable, TableRows
from totune.errors import DataError
from totune.pretraining import corpus as module
from totune.pretraining.corpus import hold_out, read_corpus
from totune.pretraining.sentences import split_sentences

TEXT = "One two.\nThree.\n\n\n  \nFour five six.\n"
DOCUMENTS = [["One two.", "Three."], ["Four five six."]]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_documents_are_told_apart_by_blank_lines(tmp_path: Path) -> None:
    found = read_corpus([write(tmp_path / "a.txt", "\ufeff" + TEXT.replace("\n", "\r\n"))])
    assert list(found) == DOCUMENTS
    assert (len(found), found.words) == (2, 6)


def test_packed_files_are_the_same_text(tmp_path: Path) -> None:
    plain = read_corpus([write(tmp_path / "a.txt", TEXT)])
    for name, packed in (
        ("a.gz", gzip.compress(TEXT.encode())),
        ("a.xz", lzma.compress(TEXT.encode())),
    ):
        found = read_corpus([write(tmp_path / name, packed)])
        assert list(found) == DOCUMENTS
        assert found.fingerprint == plain.fingerprint


def test_several_files_follow_each_other_and_words_can_be_limited(tmp_path: Path) -> None:
    files = [write(tmp_path / name, TEXT) for name in ("a.txt", "b.txt")]
    assert list(read_corpus(files)) == DOCUMENTS * 2
    assert list(read_corpus(files, max_words=4)) == DOCUMENTS
    assert list(read_corpus(files, max_words=7)) == [*DOCUMENTS, DOCUMENTS[0]]


def test_the_last_documents_are_held_out(tmp_path: Path) -> None:
    whole = read_corpus([write(tmp_path / "a.txt", TEXT), write(tmp_path / "b.txt", TEXT)])
    train, held = hold_out(whole, share=0.5)
    assert [*train, *held] == list(whole)
    assert (len(train), len(held)) == (2, 2)
    assert (train.words, held.words) == (6, 6)
    assert len(hold_out(whole, share=0.0)[1]) == 1


def test_a_dataset_of_the_hub_has_documents_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {"text": ["One two.\nThree.", None, "Four five six."], "label": ["a", "b", "c"]}
    films = {"train": TableRows(SourceTable("films", cells, range(1, 4)))}
    monkeypatch.setattr(module, "open_hub", {"owner/films": films}.__getitem__)
    assert list(read_corpus(["hub:owner/films"])) == DOCUMENTS
    reviews = {"train": TableRows(SourceTable("films", {"review": ["One."]}, range(1, 2)))}
    monkeypatch.setattr(module, "open_hub", lambda _: reviews)
    with pytest.raises(DataError, match="no column named 'text'; it has review"):
        read_corpus(["hub:films"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "holds no text"),
        ("a.txt", b"\n \n", "holds no text"),
        ("a.txt", b"one line only\n", "holds 1 paragraph"),
        ("a.txt", b"good\nbad \xe9t\xe9\n", "line 2 holds byte 0xE9 \\(byte 10 "),
        ("a.xz", b"this is no xz file", "damaged, incomplete or misnamed"),
        (
            "a.gz",
            gzip.compress(TEXT.encode() * 99, mtime=0)[:-20],
            "damaged, incomplete or misnamed",
        ),
    ],
)
def test_a_text_that_cannot_be_used_is_told_with_its_place(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=message) as caught:
        read_corpus([path])
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    write(tmp_path / "corpus.txt", TEXT)
    with pytest.raises(DataError, match=r"Did you mean .*corpus\.txt"):
        read_corpus([tmp_path / "corpsu.txt"])
    with pytest.raises(DataError, match="is no file"):
        read_corpus([tmp_path])


def test_of_one_document_none_can_be_held_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="name a text with `validation`"):
        hold_out(read_corpus([write(tmp_path / "a.txt", "One.\nTwo.\n")]))


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("It rained. We left!  Why?", ["It rained.", "We left!", "Why?"]),
        ('"Go," he said. "Now!" She went.', ['"Go," he said.', '"Now!"', "She went."]),
        ("Mr. Smith met J. R. Brown in the U.S. Senate.", None),
        (
            "It cost 3.50 dollars, e.g. Monday. 12 came.",
            ["It cost 3.50 dollars, e.g. Monday.", "12 came."],
        ),
        ("no end", None),
        ("  ", []),
    ],
)
def test_sentences(paragraph: str, sentences: list[str] | None) -> None:
    assert split_sentences(paragraph) == ([paragraph] if sentences is None else sentences)
