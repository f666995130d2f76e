"""From a store to rows: stretches of text of about one length, in a fixed random order."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from totune.errors import DataError
from totune.pretraining.store import Store


@dataclass(frozen=True)
class Rows:
    """Stretches of a store's pieces, none across two documents.

    Attributes:
        store: holds the pieces.
        spans: where each row begins and ends among all pieces, [R, 2].
        documents: the document of each, [R].
        words: of the text they were cut from, told apart by white space.
        limit: pieces that a row has room for.
    """

    store: Store
    spans: np.ndarray
    documents: np.ndarray
    words: int
    limit: int

    def __len__(self) -> int:
        return len(self.spans)

    def read(self, row: int) -> np.ndarray:
        """The pieces of a row, [T]."""
        start, end = self.spans[row]
        pieces: np.ndarray = self.store.pieces[start:end].astype(np.int64)
        return pieces

    def breaks(self, row: int) -> np.ndarray:
        """Where sentences begin inside a row, its own begin left out."""
        start, end = self.spans[row]
        sentences = self.store.sentences
        first, last = np.searchsorted(sentences, [start + 1, end])
        inside: np.ndarray = sentences[first:last] - start
        return inside

    def only(self, chosen: np.ndarray) -> "Rows":
        """Those that are chosen, [R] boolean."""
        words = round(self.words * chosen.sum() / max(1, len(chosen)))
        return replace(
            self, spans=self.spans[chosen], documents=self.documents[chosen], words=words
        )


def cut_rows(store: Store, first: int, last: int, limit: int, words: int) -> Rows:
    """The rows of documents `first` to `last`: as many whole sentences as have room.

    A sentence longer than a row goes on in the next.

    Args:
        store: the pieces.
        first: the first document.
        last: the one after the last.
        limit: pieces that a row has room for.
        words: of these documents.
    """
    spans: list[tuple[int, int]] = []
    owners: list[int] = []
    bounds = store.documents[first : last + 1].tolist()
    for number, (begin, end) in enumerate(pairwise(bounds), first):
        own = _cut(store.sentences[begin : end + 1].tolist(), limit)
        spans += own
        owners += [number] * len(own)
    found = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
    return Rows(store, found, np.asarray(owners, dtype=np.int64), words, limit)


def _cut(sentences: list[int], limit: int) -> list[tuple[int, int]]:
    """Rows of one document, from where its sentences begin and where the last one ends."""
    spans = []
    start = sentences[0]
    for begin, end in pairwise(sentences):
        if end - start > limit and begin > start:
            spans.append((start, begin))
            start = begin
        while end - start > limit:
            spans.append((start, start + limit))
            start += limit
    if sentences[-1] > start:
        spans.append((start, sentences[-1]))
    return spans


class Order:
    """Which rows a step reads: every row once, in an order of chance, then again in another.

    Args:
        rows: how many there are.
        batch_size: rows of a step.
        seed: fixes the order.
        limit: of a row, for the message.

    Raises:
        DataError: if there are fewer rows than a step reads.
    """

    def __init__(self, rows: int, batch_size: int, seed: int, limit: int) -> None:
        if rows < batch_size:
            raise DataError(
                f"The corpus makes {rows} rows of up to {limit} pieces, fewer than the "
                f"{batch_size} of one step: give more text, or choose a --batch-size of at most "
                f"{rows}."
            )
        self._rows, self._batch_size, self._seed = rows, batch_size, seed

    def rows_of(self, step: int) -> np.ndarray:
        """The rows of a step, counted from 0, [batch_size]."""
        places = np.arange(step * self._batch_size, (step + 1) * self._batch_size)
        passes, within = np.divmod(places, self._rows)
        return np.asarray(
            [
                _permutation(self._rows, self._seed, int(number))[at]
                for number, at in zip(passes, within, strict=True)
            ]
        )


@lru_cache(maxsize=2)
def _permutation(rows: int, seed: int, number: int) -> np.ndarray:
    return np.random.default_rng((seed, number)).permutation(rows)
