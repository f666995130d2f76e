"""Rows: stretches of whole sentences packed up to a length, and pairs of such stretches."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from totune.errors import DataError
from totune.pretraining.corpus import PretrainingCorpus
from totune.pretraining.tokens import TokenStore

_TRIES = 100


@dataclass(frozen=True)
class PackedRows:
    """Stretches of a store's tokens, none across two documents.

    Attributes:
        store: the tokens.
        spans: where each row begins and ends among all tokens, [R, 2].
        documents: index of each row's document, [R].
        words: white-space separated words of the text that the rows were cut from.
        limit: number of tokens that a row has room for.
    """

    store: TokenStore
    spans: np.ndarray
    documents: np.ndarray
    words: int
    limit: int

    def __len__(self) -> int:
        return len(self.spans)

    def read(self, row: int) -> np.ndarray:
        """The tokens of a row, [T]."""
        start, end = self.spans[row]
        tokens: np.ndarray = self.store.tokens[start:end].astype(np.int64)
        return tokens

    def sentence_starts(self, row: int) -> np.ndarray:
        """Where sentences begin inside a row, its own beginning left out."""
        start, end = self.spans[row]
        sentences = self.store.sentences
        first, last = np.searchsorted(sentences, [start + 1, end])
        inside: np.ndarray = sentences[first:last] - start
        return inside

    def select(self, mask: np.ndarray) -> "PackedRows":
        """The rows where a boolean mask [R] is true."""
        words = round(self.words * mask.sum() / max(1, len(mask)))
        return replace(self, spans=self.spans[mask], documents=self.documents[mask], words=words)


def pack_splits(
    store: TokenStore, train: PretrainingCorpus, held_out: PretrainingCorpus, limit: int
) -> tuple[PackedRows, PackedRows]:
    """The rows to train on and those held out, of up to `limit` tokens each."""
    border = store.train_documents
    last = border + len(held_out)
    return (
        pack_rows(store, 0, border, limit, train.words),
        pack_rows(store, border, last, limit, held_out.words),
    )


def pack_rows(store: TokenStore, first: int, last: int, limit: int, words: int) -> PackedRows:
    """Packs documents `first` to `last`: each row has as many whole sentences as have room.

    A sentence longer than a row continues in the next.

    Args:
        store: the tokens.
        first: the first document.
        last: the one after the last.
        limit: number of tokens that a row has room for.
        words: number of words of these documents.
    """
    spans: list[tuple[int, int]] = []
    owners: list[int] = []
    bounds = store.documents[first : last + 1].tolist()
    for number, (begin, end) in enumerate(pairwise(bounds), first):
        own = _pack_document(store.sentences[begin : end + 1].tolist(), limit)
        spans += own
        owners += [number] * len(own)
    packed = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
    return PackedRows(store, packed, np.asarray(owners, dtype=np.int64), words, limit)


def _pack_document(sentences: list[int], limit: int) -> list[tuple[int, int]]:
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


class RowOrder:
    """Which rows a step reads: every row once in a random order, then again in another.

    Args:
        rows: number of rows.
        batch_size: rows of a step.
        seed: fixes the order.
        limit: number of tokens that a row has room for, for the message.

    Raises:
        DataError: if there are fewer rows than a step reads.
    """

    def __init__(self, rows: int, batch_size: int, seed: int, limit: int) -> None:
        if rows < batch_size:
            raise DataError(
                f"The corpus makes {rows} rows of up to {limit} tokens, fewer than the "
                f"{batch_size} of one step: give more text, or choose a batch_size of at most "
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


class SentencePair(NamedTuple):
    """Two stretches of tokens for next-sentence prediction (Devlin et al. 2019, 3.1, task 2).

    The first is a number of sentences of a row. The second is, half of the time, the rest of the
    same row; else it is from another document, and `is_random` is true.
    """

    first: np.ndarray
    second: np.ndarray
    is_random: bool


def select_pairable(rows: PackedRows) -> PackedRows:
    """The rows with two sentences or more, so that they can be divided between the two parts.

    Raises:
        DataError: if they are not from two documents at least.
    """
    several = [len(rows.sentence_starts(row)) > 0 for row in range(len(rows))]
    pairable = rows.select(np.asarray(several, dtype=bool))
    if len(np.unique(pairable.documents)) < 2:
        raise DataError(
            "next_sentence needs two documents with two sentences each, in the text to train on "
            "and in the one held out: put blank lines between documents, or leave the option out."
        )
    return pairable


def sample_pair(rows: PackedRows, row: int, random: np.random.Generator) -> SentencePair:
    """A pair whose first stretch begins a row.

    Args:
        rows: pairable ones.
        row: index of the row.
        random: decides where the row is divided, and what follows.
    """
    tokens = rows.read(row)
    at = int(random.choice(rows.sentence_starts(row)))
    if random.random() < 0.5:
        return SentencePair(tokens[:at], tokens[at:], is_random=False)
    other = _row_of_another_document(rows, row, random)
    start = int(random.choice(rows.sentence_starts(other)))
    second = rows.read(other)[start:][: rows.limit - at]
    return SentencePair(tokens[:at], second, is_random=True)


def _row_of_another_document(rows: PackedRows, row: int, random: np.random.Generator) -> int:
    for _ in range(_TRIES):
        other = int(random.integers(len(rows)))
        if rows.documents[other] != rows.documents[row]:
            return other
    others = np.flatnonzero(rows.documents != rows.documents[row])  # one document is nearly all
    return int(random.choice(others))
