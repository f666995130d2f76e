"""Sentences whose words are tagged, as encoder inputs: document context, and nothing cut off.

A document that fits the encoder is one input. A longer one is cut into cores of whole sentences,
each encoded with as much of the document on both sides as fits. A sentence that is itself longer
than the encoder is encoded in overlapping inputs, and each of its pieces is read from the input in
which it stands farthest from an edge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from totune.data.examples import Examples
from totune.inputs.encodings import (
    EncodedSplit,
    Encodings,
    Ragged,
    Tokenizer,
    check_tokenizer,
    identity_of,
    offsets_of,
)

CHUNK = 2000  # rows tokenised at once
CORE = 0.75  # the most of an input that a core takes, so that a quarter is left for context
OVERLAP = 0.25  # share of an input that the next one of the same sentence repeats


@dataclass(frozen=True)
class Cut:
    """A unit: sentences first..last of a document, encoded as the spans [start, end) of it."""

    first: int
    last: int
    spans: tuple[tuple[int, int], ...]


def windows(
    examples: Examples, tokenizer: Tokenizer, max_length: int, context: bool
) -> EncodedSplit:
    """Arranges sentences as encoder inputs.

    Args:
        examples: rows with words.
        tokenizer: a fast one, with a padding token.
        max_length: of an input in word pieces, special ones included.
        context: whether sentences of a document are encoded together.

    Raises:
        ModelError: the tokenizer is not a fast one or cannot pad.
        ConfigError: `max_length` leaves no room for the text.
    """
    check_tokenizer(tokenizer, max_length, pairs=False)
    builder = _Builder(*_special(tokenizer))
    room = max_length - builder.special
    sentences = list(_word_pieces(examples, tokenizer))
    for rows in _documents(examples, context):
        builder.add([sentences[row][0] for row in rows], room)
    inputs = Ragged.of(builder.inputs)
    has_types = "token_type_ids" in tokenizer.model_input_names
    pieces = Encodings(
        input_ids=inputs.values.astype(np.int32),
        offsets=inputs.offsets,
        token_type_ids=np.zeros(builder.total, dtype=np.int8) if has_types else None,
        pad_token_id=int(tokenizer.pad_token_id),
        truncated=0,
        identity=identity_of(examples, tokenizer, max_length, "words", context),
    )
    words = Ragged.of([starts for _, starts in sentences])
    return EncodedSplit(
        pieces=pieces,
        inputs=np.asarray(builder.units_of_inputs),
        rows=np.asarray(builder.units_of_rows),
        counts=words.lengths,
        sides=(Ragged.of(builder.places),),
        words=words,
    )


class _Builder:
    """Inputs, units and places, document by document; arguments: the special pieces around."""

    def __init__(self, before: np.ndarray, after: np.ndarray) -> None:
        self.before, self.after = before, after
        self.special = len(before) + len(after)
        self.inputs: list[np.ndarray] = []
        self.places: list[np.ndarray] = []  # of each sentence, among all pieces
        self.units_of_inputs, self.units_of_rows = [0], [0]
        self.total = 0

    def add(self, sentences: Sequence[np.ndarray], room: int) -> None:
        """Adds the sentences of one document."""
        lengths = np.asarray([len(own) for own in sentences])
        document, ends = np.concatenate(sentences), np.cumsum(lengths)
        for cut in cuts(lengths, room):
            # Where piece 0 of the document would be, were each span the whole of it.
            bases = np.asarray([self._encode(document, *span) - span[0] for span in cut.spans])
            for row in range(cut.first, cut.last):
                own = np.arange(ends[row] - lengths[row], ends[row])
                self.places.append(own + bases[nearest_middle(own, cut.spans)])
            self.units_of_inputs.append(len(self.inputs))
            self.units_of_rows.append(len(self.places))

    def _encode(self, document: np.ndarray, start: int, end: int) -> int:
        """Adds an input; returns where its first own piece is among all pieces."""
        place = self.total + len(self.before)
        self.inputs.append(np.concatenate([self.before, document[start:end], self.after]))
        self.total += len(self.inputs[-1])
        return place


def cuts(lengths: np.ndarray, room: int) -> Iterator[Cut]:
    """Cuts a document into units, in order, every sentence in exactly one.

    Args:
        lengths: word pieces of its sentences.
        room: word pieces that fit an input.
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    first = 0
    while first < len(lengths):
        start = int(ends[first] - lengths[first])
        limit = start + (room if total <= room else CORE * room)
        last = max(first + 1, int(np.searchsorted(ends, limit, side="right")))
        end = int(ends[last - 1])
        if end - start > room:
            yield Cut(first, last, overlapping(start, end, room))
        else:
            yield Cut(first, last, (_with_context(start, end, total, room),))
        first = last


def overlapping(start: int, end: int, room: int) -> tuple[tuple[int, int], ...]:
    """Spans of `room` pieces that cover [start, end), each repeating a share of the one before."""
    step = max(1, int(room * (1 - OVERLAP)))
    count = 1 + -(-(end - start - room) // step)
    firsts = np.linspace(start, end - room, count).round().astype(int)
    return tuple((int(first), int(first) + room) for first in firsts)


def nearest_middle(pieces: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """For each piece the number of the span that holds it farthest from a cut, [len(pieces)]."""
    bounds = np.asarray(spans)
    left = pieces[:, None] - bounds[:, 0]
    right = bounds[:, 1] - 1 - pieces[:, None]
    distance = np.minimum(left, right)
    # The ends of the whole stretch are no cuts, but what lies outside a span must stay outside.
    distance[:, 0] = np.where(left[:, 0] >= 0, right[:, 0], distance[:, 0])
    distance[:, -1] = np.where(right[:, -1] >= 0, left[:, -1], distance[:, -1])
    if len(spans) == 1:
        return np.zeros(len(pieces), dtype=int)
    return np.asarray(distance.argmax(axis=1))


def _with_context(start: int, end: int, total: int, room: int) -> tuple[int, int]:
    """[start, end) and what fits of the document around it, as even as its ends allow."""
    spare = room - (end - start)
    left = min(start, spare // 2)
    right = min(total - end, spare - left)
    left = min(start, spare - right)
    return start - left, end + right


def _documents(examples: Examples, context: bool) -> Iterator[Sequence[int]]:
    """The rows of each document; without context every row is one."""
    documents = examples.documents if context else None
    if documents is None:
        yield from ([row] for row in range(len(examples)))
        return
    for _, rows in groupby(range(len(examples)), key=documents.__getitem__):
        yield list(rows)


def _special(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The special pieces before and after a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, special = np.asarray(encoded["input_ids"]), np.asarray(encoded["special_tokens_mask"])
    own = np.flatnonzero(special == 0)
    return ids[: own[0]], ids[own[-1] + 1 :]


def _word_pieces(
    examples: Examples, tokenizer: Tokenizer
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each sentence its pieces, and which of them is the first of each word.

    Words are joined by spaces, so that every kind of tokenizer sees text as it knows it.
    """
    assert examples.words is not None
    for start in range(0, len(examples), CHUNK):
        chunk = examples.words[start : start + CHUNK]
        encoded = tokenizer(
            [" ".join(words) for words in chunk],
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )
        for words, ids, spans in zip(
            chunk, encoded["input_ids"], encoded["offset_mapping"], strict=True
        ):
            yield _aligned(words, np.asarray(ids, dtype=np.int32), spans, tokenizer)


def _aligned(
    words: Sequence[str],
    ids: np.ndarray,
    spans: Sequence[tuple[int, int]],
    tokenizer: Tokenizer,
) -> tuple[np.ndarray, np.ndarray]:
    """Pieces and the first of each word; a word that leaves no piece gets an unknown one."""
    starts = offsets_of([len(word) + 1 for word in words])[:-1]
    begins, ends = np.asarray(spans, dtype=int).reshape(-1, 2).T
    last = np.maximum(ends - 1, 0)
    # A piece of nothing but the space before a word is that word's, as in "▁", "京".
    last += (ends - begins <= 1) & np.isin(last + 1, starts)
    of_word = np.searchsorted(starts, last, side="right") - 1
    of_word = np.maximum.accumulate(of_word) if len(of_word) else of_word
    missing = np.setdiff1d(np.arange(len(words)), of_word)
    if len(missing):
        unknown = tokenizer.unk_token_id
        at = np.searchsorted(of_word, missing)
        ids = np.insert(ids, at, tokenizer.pad_token_id if unknown is None else unknown)
        of_word = np.insert(of_word, at, missing)
    return ids, np.searchsorted(of_word, np.arange(len(words)))
