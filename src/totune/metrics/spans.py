"""Precision, recall and F1 of labelled spans of words, as conlleval counts them.

A tag is a code: 0 is O; a tag of type t (from 0) is 1 + 4 t + k with k = 0 for B, 1 for I, 2 for
E, 3 for S. So no names are needed here, and IOB1, IOB2 and IOBES are all read by one lenient rule,
that of conlleval (Tjong Kim Sang and Buchholz 2000) with E and S added as seqeval does by default:

A span starts at B and S; at any tag after O, E, S or the start of the sentence; and where the type
changes. It ends before the next start, before O and at the end of the sentence. It is right if its
first word, last word and type all are. A ratio of 0 / 0 is 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from totune.metrics.metric import Array, Floats, Scorer, product, ratio

PREFIXES = "BIES"
OUTSIDE = 0

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """The K spans of sentences [N, W]: first and last word (n * W + w) and type, each [K]."""

    first: Integers
    last: Integers
    kind: Integers
    shape: tuple[int, int]

    def within(self, other: "Spans") -> NDArray[np.bool_]:
        """Which of these spans `other` holds too, [K]."""
        types = 1 + int(max(self.kind.max(initial=0), other.kind.max(initial=0)))
        return np.isin(self._keys(types), other._keys(types), assume_unique=True)

    def _keys(self, types: int) -> Integers:
        return (self.first * self.shape[1] + self.last - self.first) * types + self.kind

    def per_row(self, chosen: NDArray[np.bool_]) -> Floats:
        """How many of the `chosen` spans each sentence has, [N]."""
        rows = self.first[chosen] // self.shape[1]
        return np.bincount(rows, minlength=self.shape[0]).astype(np.float64)

    def per_type(self, chosen: NDArray[np.bool_], types: int) -> Integers:
        """How many of the `chosen` spans are of each of the first `types` types."""
        return np.bincount(self.kind[chosen], minlength=types)[:types]


@dataclass(frozen=True)
class SpanScore:
    """The scores of one type, and the spans they are made of."""

    precision: float
    recall: float
    f1: float
    correct: int
    found: int
    gold: int


def find_spans(codes: Array) -> Spans:
    """The spans of sentences of codes [N, W]; padding is no word."""
    width = codes.shape[1]
    at = np.flatnonzero(codes > OUTSIDE)
    tags = codes.reshape(-1)[at].astype(np.int64) - 1
    kind, prefix = tags // 4, tags % 4
    starts = (prefix == 0) | (prefix == 3)
    adjacent = (np.diff(at) == 1) & (at[1:] % width != 0)
    closed = prefix[:-1] >= 2  # after E and S
    starts[1:] |= ~adjacent | closed | (kind[1:] != kind[:-1])
    starts[:1] = True
    ends = np.append(starts[1:], True)[: len(starts)]
    return Spans(at[starts], at[ends], kind[starts], (len(codes), width))


def span_scores(targets: Array, predictions: Array, n_types: int) -> list[SpanScore]:
    """The scores of each of the first `n_types` types.

    Args:
        targets: codes [N, W].
        predictions: codes [N, W].
        n_types: how many types training knows; spans of other types belong to none of these.
    """
    gold, found = find_spans(targets), find_spans(predictions)
    hits = found.per_type(found.within(gold), n_types)
    predicted = found.per_type(np.ones_like(found.kind, dtype=bool), n_types)
    actual = gold.per_type(np.ones_like(gold.kind, dtype=bool), n_types)
    scores = zip(
        ratio(hits, predicted).tolist(),
        ratio(hits, actual).tolist(),
        ratio(2 * hits, predicted + actual).tolist(),
        hits.tolist(),
        predicted.tolist(),
        actual.tolist(),
        strict=True,
    )
    return [SpanScore(*numbers) for numbers in scores]


def precision(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The share of predicted spans that are right."""
    return _scorer(targets, predictions, lambda hits, found, gold: ratio(hits, found))


def recall(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The share of the targets' spans that are found."""
    return _scorer(targets, predictions, lambda hits, found, gold: ratio(hits, gold))


def f1(targets: Array, predictions: Array, n_classes: int) -> Scorer:
    """The harmonic mean of precision and recall over all types together (micro)."""
    return _scorer(targets, predictions, lambda hits, found, gold: ratio(2 * hits, found + gold))


def _scorer(
    targets: Array, predictions: Array, score: Callable[[Floats, Floats, Floats], Floats]
) -> Scorer:
    """A score of the weighted sums of what each sentence has right, found and to be found."""
    gold = find_spans(targets)
    actual = gold.per_row(np.ones_like(gold.kind, dtype=bool))[None]  # [1, N]
    counts = [_counts(find_spans(one), gold) for one in predictions]
    hits, found = (np.stack(part) for part in zip(*counts, strict=True))  # [S, N]

    def scores(weights: Floats) -> Floats:
        sums = (product(part, weights) for part in (hits, found, actual))
        return score(*sums)

    return scores


def _counts(found: Spans, gold: Spans) -> tuple[Floats, Floats]:
    every = np.ones_like(found.kind, dtype=bool)
    return found.per_row(found.within(gold)), found.per_row(every)
