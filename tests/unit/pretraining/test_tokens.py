"""Tokenised once, to the same tokens however many processes do it, and again if damaged."""

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.unit.pretraining.conftest import write_corpus

from totune.encoders.words import EMPTY, END, Vocabulary, WordTokenizer
from totune.errors import RunError
from totune.pretraining import tokens as module
from totune.pretraining.corpus import PretrainingCorpus, hold_out, read_corpus
from totune.pretraining.files import cache_root, cached
from totune.pretraining.sentences import split_sentences
from totune.pretraining.tokens import TokenStore, open_store
from totune.pretraining.vocabulary import learn_pieces
from totune.progress import Progress


@pytest.fixture
def split_corpus(corpus_file: Path) -> tuple[PretrainingCorpus, PretrainingCorpus]:
    return hold_out(read_corpus([corpus_file]), share=0.1)


def open_words(texts: tuple[PretrainingCorpus, PretrainingCorpus]) -> TokenStore:
    return open_store(*texts, WordTokenizer(Vocabulary(), 512), Progress())


def sentences_of(corpus: PretrainingCorpus) -> list[str]:
    return [one for paragraph in corpus.paragraphs() for one in split_sentences(paragraph)]


def test_word_pieces_are_those_of_the_tokenizer(
    split_corpus: tuple[PretrainingCorpus, PretrainingCorpus],
) -> None:
    tokenizer = learn_pieces(
        split_corpus[0], 60, cased=False, exact=False, max_length=32, progress=Progress()
    )
    store = open_store(*split_corpus, tokenizer, Progress())
    wanted = [*sentences_of(split_corpus[0]), *sentences_of(split_corpus[1])]
    found = [store.tokens[a:b].tolist() for a, b in pairwise(store.sentences)]
    assert store.tokens.dtype == np.uint16
    assert found == [tokenizer(one, add_special_tokens=False)["input_ids"] for one in wanted]
    assert len(store.documents) - 1 == len(split_corpus[0]) + len(split_corpus[1])
    assert store.train_documents == len(split_corpus[0])


def test_words_are_numbered_by_how_often_they_are_trained_on(
    split_corpus: tuple[PretrainingCorpus, PretrainingCorpus],
) -> None:
    store = open_words(split_corpus)
    assert store.counts.tolist() == sorted(store.counts, reverse=True)
    assert set(store.words[:2]) == {"The", "."}
    first = store.tokens[: store.sentences[1]]
    assert first[-1] == END
    spoken = " ".join(store.words[number - EMPTY - 1] for number in first[:-1])
    assert spoken == sentences_of(split_corpus[0])[0].replace(".", " .")
    trained = store.tokens[: store.sentences[store.documents[store.train_documents]]]
    assert (trained > EMPTY).sum() == store.counts.sum()


def test_a_store_is_made_once(
    split_corpus: tuple[PretrainingCorpus, PretrainingCorpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_words(split_corpus)
    monkeypatch.setattr(module, "tokenise", None)
    again = open_words(split_corpus)
    assert np.array_equal(first.tokens, again.tokens)


def test_what_could_not_be_finished_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))

    def fill(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match="No space left on device; set TOTUNE_CACHE"):
        cached("key", fill, lambda folder: folder, Progress())
    assert [path.name for path in cache_root().iterdir()] == ["key.lock"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pieces.bin", b"\x01\x00\x00\x00"),
        ("pieces.bin", b""),
        ("store.json", b"{}"),
        ("store.json", b'{"dtype": "uint32"'),
        ("sentences.npy", b"no array"),
        ("words.txt", b"one"),
        ("counts.npy", None),
    ],
)
def test_a_damaged_store_is_reported_and_made_again(
    split_corpus: tuple[PretrainingCorpus, PretrainingCorpus],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    content: bytes | None,
) -> None:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))
    whole = open_words(split_corpus).tokens.copy()
    (file,) = cache_root().glob(f"*/{name}")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    progress = Progress()
    warnings: list[str] = []
    monkeypatch.setattr(progress, "warn", warnings.append)
    again = open_store(*split_corpus, WordTokenizer(Vocabulary(), 512), progress)
    assert np.array_equal(again.tokens, whole)
    (warning,) = warnings
    assert str(file.parent) in warning
    assert "cannot be read" in warning
    assert "\n" not in warning


def test_word_pieces_have_the_same_ids_each_time(
    split_corpus: tuple[PretrainingCorpus, PretrainingCorpus],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))
    tokenizer = learn_pieces(
        split_corpus[0], 60, cased=False, exact=False, max_length=32, progress=Progress()
    )
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert pieces[5:] == sorted(pieces[5:])


def test_memory_does_not_grow_with_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only where sentences begin is kept in memory: tens of bytes each, not their tokens."""
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "CHUNK", 20_000)
    peaks, sentences = [], []
    for documents in (200, 1_600):
        texts = hold_out(read_corpus([write_corpus(tmp_path / "text.txt", documents)]))
        tracemalloc.start()
        store = open_words(texts)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sentences.append(len(store.sentences))
    assert sentences[1] > 7 * sentences[0]
    assert peaks[1] - peaks[0] < 64 * (sentences[1] - sentences[0])


@pytest.mark.slow
def test_processes_make_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = hold_out(read_corpus([write_corpus(tmp_path / "text.txt", 300, seed=5)]))
    monkeypatch.setattr(module, "CHUNK", 5_000)
    alone = open_words(corpus)
    monkeypatch.setattr(module, "PARALLEL_FROM", 0)
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path / "cache"))
    together = open_words(corpus)
    assert np.array_equal(alone.tokens, together.tokens)
    assert np.array_equal(alone.documents, together.documents)
    assert alone.words == together.words
