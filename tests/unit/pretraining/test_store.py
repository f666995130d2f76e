"""Tokenised once, the same however many processes do it; rows that respect documents."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pretraining.conftest import write_corpus

from totune.encoders.words import EMPTY, END
from totune.errors import DataError, RunError
from totune.pretraining import store as module
from totune.pretraining import tokenising
from totune.pretraining.corpus import Corpus, hold_out, read_corpus
from totune.pretraining.files import cache_root, kept
from totune.pretraining.rows import Order, cut_rows
from totune.pretraining.sentences import split_sentences
from totune.pretraining.store import Store, open_store
from totune.pretraining.tokenising import Pieces, Words
from totune.pretraining.vocabulary import learn_pieces
from totune.progress import Progress


@pytest.fixture
def texts(text: Path) -> tuple[Corpus, Corpus]:
    return hold_out(read_corpus([text]), share=0.1)


def sentences_of(corpus: Corpus) -> list[str]:
    return [one for paragraph in corpus.paragraphs() for one in split_sentences(paragraph)]


def test_word_pieces_are_those_of_the_tokenizer(texts: tuple[Corpus, Corpus]) -> None:
    tokenizer = learn_pieces(
        texts[0], 60, cased=False, exact=False, max_length=32, progress=Progress()
    )
    how = Pieces(tokenizer.backend_tokenizer.to_str())
    store = open_store(*texts, how, Progress(), len(tokenizer))
    wanted = [*sentences_of(texts[0]), *sentences_of(texts[1])]
    found = [store.pieces[a:b].tolist() for a, b in pairwise(store.sentences)]
    assert store.pieces.dtype == np.uint16
    assert found == [tokenizer(one, add_special_tokens=False)["input_ids"] for one in wanted]
    assert len(store.documents) - 1 == len(texts[0]) + len(texts[1])
    assert store.train_documents == len(texts[0])


def test_words_are_numbered_by_how_often_they_are_trained_on(
    texts: tuple[Corpus, Corpus],
) -> None:
    store = open_store(*texts, Words(), Progress())
    assert store.counts.tolist() == sorted(store.counts, reverse=True)
    assert set(store.words[:2]) == {"The", "."}
    first = store.pieces[: store.sentences[1]]
    assert first[-1] == END
    spoken = " ".join(store.words[number - EMPTY - 1] for number in first[:-1])
    assert spoken == sentences_of(texts[0])[0].replace(".", " .")
    trained = store.pieces[: store.sentences[store.documents[store.train_documents]]]
    assert (trained > EMPTY).sum() == store.counts.sum()


def test_a_store_is_made_once(
    texts: tuple[Corpus, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_store(*texts, Words(), Progress())
    monkeypatch.setattr(module, "tokenise", None)
    again = open_store(*texts, Words(), Progress())
    assert np.array_equal(first.pieces, again.pieces)


def test_what_could_not_be_finished_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))

    def fill(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match="No space left on device; set TOTUNE_CACHE"):
        kept("key", fill)
    assert [path.name for path in cache_root().iterdir()] == ["key.lock"]


@pytest.mark.slow
def test_processes_make_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = hold_out(read_corpus([write_corpus(tmp_path / "text.txt", 300, seed=5)]))
    monkeypatch.setattr(tokenising, "CHUNK", 5_000)
    alone = open_store(*corpus, Words(), Progress())
    monkeypatch.setattr(tokenising, "PARALLEL_FROM", 0)
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path / "cache"))
    together = open_store(*corpus, Words(), Progress())
    assert np.array_equal(alone.pieces, together.pieces)
    assert np.array_equal(alone.documents, together.documents)
    assert alone.words == together.words


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=5))
def test_rows_hold_every_piece_once_and_never_two_documents(documents: list[list[int]]) -> None:
    lengths = [length for document in documents for length in document]
    ends = np.cumsum([0, *lengths])
    borders = np.cumsum([0, *map(len, documents)])
    store = Store(np.arange(ends[-1]), ends, borders, len(documents), [], np.zeros(0))
    rows = cut_rows(store, 0, len(documents), 6, 100)
    held = [rows.read(row) for row in range(len(rows))]
    assert np.concatenate(held).tolist() == list(range(ends[-1]))
    assert max(map(len, held)) <= 6
    for row, pieces in enumerate(held):
        own = ends[borders[rows.documents[row]]], ends[borders[rows.documents[row] + 1]]
        assert own[0] <= pieces[0]
        assert pieces[-1] < own[1]
        starts = {int(pieces[0] + at) for at in rows.breaks(row)}
        assert starts == {end for end in ends.tolist() if pieces[0] < end <= pieces[-1]}


def test_an_order_reads_every_row_in_each_pass() -> None:
    order = Order(10, 4, seed=3, limit=8)
    read = np.concatenate([order.rows_of(step) for step in range(5)])
    assert sorted(read[:10]) == list(range(10))
    assert sorted(read[10:]) == list(range(10))
    assert read[:10].tolist() != read[10:].tolist()
    assert read.tolist() == np.concatenate([order.rows_of(step) for step in range(5)]).tolist()


def test_fewer_rows_than_a_batch_are_told() -> None:
    with pytest.raises(DataError, match=r"makes 3 rows of up to 8 pieces.*batch-size of at most 3"):
        Order(3, 4, seed=0, limit=8)
