"""A corpus as numbers on disk, tokenised once: memory-mapped, so that it need not fit memory.

A store is a folder named after everything it depends on: the text, the tokeniser, which documents
are held out. A second pretraining on the same text finds it there.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from totune.encoders.words import EMPTY
from totune.pretraining.corpus import Corpus
from totune.pretraining.files import kept
from totune.pretraining.tokenising import Pieces, Tokenise, Tokenised, tokenise
from totune.progress import Progress

VERSION = 1  # of what tokenising makes of a text; to be raised when that changes
_PIECES, _SENTENCES, _DOCUMENTS = "pieces.bin", "sentences.npy", "documents.npy"
_WORDS, _COUNTS, _FACTS = "words.txt", "counts.npy", "store.json"
_AT_ONCE = 1 << 24  # numbers that are mapped at a time


@dataclass(frozen=True)
class Store:
    """Documents end to end, those to train on first, then those held out.

    Attributes:
        pieces: the numbers of all pieces, [N].
        sentences: where each sentence begins, and the end of the last, [S + 1].
        documents: the first sentence of each document, and the end of the last, [D + 1].
        train_documents: how many documents are trained on.
        words: what the numbers after `EMPTY` mean, the most frequent first; none for word pieces.
        counts: how often each of `words` comes in what is trained on.
    """

    pieces: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    train_documents: int
    words: list[str]
    counts: np.ndarray


def open_store(
    train: Corpus, validation: Corpus, how: Tokenise, progress: Progress, size: int = 2**32
) -> Store:
    """The numbers of two corpora; tokenised now unless they were before.

    Args:
        train: to train on.
        validation: held out.
        how: the tokeniser.
        progress: told how far it is.
        size: how many numbers the tokeniser has, which decides on their width.

    Raises:
        RunError: if the store cannot be written.
    """
    key = hashlib.sha256(repr((VERSION, _span(train), _span(validation), how)).encode())

    def make(folder: Path) -> None:
        _Writer(folder, np.dtype(np.uint16 if size <= 2**16 else np.uint32)).write(
            train, validation, how, progress
        )

    return _read(kept(key.hexdigest()[:32], make))


def _span(corpus: Corpus) -> tuple[str, int, int]:
    return corpus.fingerprint, corpus.first, corpus.last


class _Writer:
    """Fills a folder; whole words get their final numbers, by frequency, at the end."""

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        self._folder, self._dtype = folder, dtype
        self._numbers: dict[str, int] = {}  # of words, in the order of appearance, from 0
        self._counts = np.zeros(0, dtype=np.int64)

    def write(self, train: Corpus, validation: Corpus, how: Tokenise, progress: Progress) -> None:
        sentences: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        documents: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        total = len(train) + len(validation)
        with (
            (self._folder / _PIECES).open("wb") as file,
            progress.bar("tokenising documents", total) as bar,
        ):
            for corpus in (train, validation):
                for count, made in tokenise(corpus, how, corpus.words):
                    ids = self._known(made, counted=corpus is train)
                    ids.astype(self._dtype).tofile(file)
                    real = made.sentences[made.sentences > 0]
                    sentences.append(real)
                    documents.append(_nonempty(made))
                    bar.advance(count)
        np.save(self._folder / _SENTENCES, np.concatenate(sentences).cumsum())
        np.save(self._folder / _DOCUMENTS, np.concatenate(documents).cumsum())
        self._rank(isinstance(how, Pieces))
        facts = {"dtype": self._dtype.name, "train_documents": len(train)}
        (self._folder / _FACTS).write_text(json.dumps(facts) + "\n", encoding="utf-8")

    def _known(self, made: Tokenised, counted: bool) -> np.ndarray:
        """The numbers of a chunk as those of the whole corpus."""
        if not made.words:
            return made.ids
        own = [self._numbers.setdefault(word, len(self._numbers)) for word in made.words]
        numbers = np.concatenate([np.arange(EMPTY + 1), np.asarray(own) + EMPTY + 1])
        room = len(self._numbers) - len(self._counts)
        self._counts = np.concatenate([self._counts, np.zeros(room, dtype=np.int64)])
        ids: np.ndarray = numbers[made.ids]
        if counted:
            found = np.bincount(ids, minlength=len(self._numbers) + EMPTY + 1)
            self._counts += found[EMPTY + 1 :]
        return ids

    def _rank(self, fixed: bool) -> None:
        """Numbers words anew, the most frequent first."""
        order = np.argsort(-self._counts, kind="stable")
        words = list(self._numbers)
        text = "\n".join(words[at] for at in order)
        (self._folder / _WORDS).write_text(text, encoding="utf-8")
        np.save(self._folder / _COUNTS, self._counts[order])
        if fixed or not len(order):
            return
        rank = np.empty(len(order) + EMPTY + 1, dtype=self._dtype)
        rank[: EMPTY + 1] = np.arange(EMPTY + 1)
        rank[order + EMPTY + 1] = np.arange(len(order)) + EMPTY + 1
        pieces = np.memmap(self._folder / _PIECES, self._dtype, "r+")
        for start in range(0, len(pieces), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            pieces[part] = rank[pieces[part]]
        pieces.flush()


def _nonempty(made: Tokenised) -> np.ndarray:
    """How many sentences of each document have any pieces."""
    ends = made.documents.cumsum()
    real = np.concatenate([[0], (made.sentences > 0).cumsum()])
    counts: np.ndarray = real[ends] - real[ends - made.documents]
    return counts


def _read(folder: Path) -> Store:
    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    text = (folder / _WORDS).read_text(encoding="utf-8")
    return Store(
        np.memmap(folder / _PIECES, np.dtype(facts["dtype"]), "r"),
        np.load(folder / _SENTENCES),
        np.load(folder / _DOCUMENTS),
        facts["train_documents"],
        text.split("\n") if text else [],
        np.load(folder / _COUNTS),
    )
