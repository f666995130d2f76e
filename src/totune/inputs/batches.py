"""From texts to batches of word pieces: tokenised once, bucketed by length, padded per batch."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import BatchEncoding

from totune.data.examples import Examples
from totune.errors import ConfigError, ModelError
from totune.inputs.tokenizer import Tokenizer

BUCKET_NOISE = 0.1  # share of a length by which sorting keys are jittered, so batches vary
CHUNK = 2000  # rows tokenised at once


@dataclass(frozen=True)
class TokenIndex:
    """S sequences of places, padded.

    Attributes:
        at: [S, T], 0 on padding.
        mask: [S, T] bool, true on places: a prefix of every row.
    """

    at: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> "TokenIndex":
        return TokenIndex(self.at.to(device), self.mask.to(device))


@dataclass(frozen=True)
class Batch:
    """Word pieces of B inputs, padded to T.

    Attributes:
        indices: which inputs these are, [B].
        input_ids: [B, T], padded with the tokenizer's padding id.
        attention_mask: [B, T], 1 on pieces, 0 on padding.
        token_type_ids: [B, T] or None when the encoder has no segments.
        targets: flat targets [P], set by the trainer from the task; None when predicting.
        sides: where the token sequences that a head reads lie in the flattened [B * T] pieces: of
            the first and of the second text of every pair, or of every sentence. Empty where a
            head reads whole inputs.
        words: where each word starts within its sentence; None where no words are tagged.
    """

    indices: np.ndarray
    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor | None = None
    targets: Tensor | None = None
    sides: tuple[TokenIndex, ...] = ()
    words: TokenIndex | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def to(self, device: torch.device) -> "Batch":
        types, targets, words = self.token_type_ids, self.targets, self.words
        return replace(
            self,
            input_ids=self.input_ids.to(device),
            attention_mask=self.attention_mask.to(device),
            token_type_ids=None if types is None else types.to(device),
            targets=None if targets is None else targets.to(device),
            sides=tuple(side.to(device) for side in self.sides),
            words=None if words is None else words.to(device),
        )


@dataclass(frozen=True)
class Encodings:
    """A tokenised split: the word pieces of every row, end to end.

    Attributes:
        input_ids: all rows' pieces concatenated, [sum of lengths].
        token_type_ids: likewise, or None.
        offsets: row i holds input_ids[offsets[i]:offsets[i + 1]].
        truncated: how many rows lost pieces to the length limit.
        identity: hash-relevant facts: tokenizer fingerprint, limit, data digest.
        second_starts: of pairs in one sequence, where the second text starts in each row, [N].
    """

    input_ids: np.ndarray
    offsets: np.ndarray
    token_type_ids: np.ndarray | None
    pad_token_id: int
    truncated: int
    identity: str
    second_starts: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def batch(self, indices: np.ndarray) -> Batch:
        """Rows `indices` ([B]) as a batch [B, T], padded on the right to the longest of them."""
        starts, lengths = self.offsets[indices], self.lengths[indices]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]  # [B, T]
        at = np.where(inside, starts[:, None] + columns, 0)  # [B, T], places in input_ids
        ids = np.where(inside, self.input_ids[at], self.pad_token_id)
        types = self.token_type_ids
        return Batch(
            indices=np.asarray(indices),
            input_ids=_long(ids),
            attention_mask=_long(inside),
            token_type_ids=None if types is None else _long(np.where(inside, types[at], 0)),
        )


def tokenize(examples: Examples, tokenizer: Tokenizer, max_length: int) -> Encodings:
    """Cuts every row into word pieces, pairs into one sequence with two segments.

    Args:
        examples: the rows.
        tokenizer: a fast one, with a padding token.
        max_length: of a row in word pieces, special ones included; of a pair that is longer, the
            longer text is cut first.

    Raises:
        ModelError: the tokenizer is not a fast one or cannot pad.
        ConfigError: `max_length` leaves no room for the text.
    """
    check_tokenizer(tokenizer, max_length, pairs=examples.pairs is not None)
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    lengths: list[int] = []
    seconds: list[int] = []
    truncated = 0
    for start in range(0, len(examples), CHUNK):
        encoded = _encode(examples, slice(start, start + CHUNK), tokenizer, max_length)
        rows = encoded["input_ids"]
        lengths += map(len, rows)
        ids += [np.asarray(row, dtype=np.int32) for row in rows]
        types += [np.asarray(row, dtype=np.int8) for row in encoded.get("token_type_ids", ())]
        truncated += sum(bool(row.overflowing) for row in encoded.encodings or ())
        if examples.pairs is not None:
            seconds += [_second_start(row.sequence_ids) for row in encoded.encodings or ()]
    return Encodings(
        input_ids=np.concatenate(ids),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        token_type_ids=np.concatenate(types) if types else None,
        pad_token_id=int(tokenizer.pad_token_id),
        truncated=truncated,
        identity=identity_of(examples, tokenizer, max_length),
        second_starts=np.asarray(seconds) if seconds else None,
    )


def shuffled_batches(
    lengths: np.ndarray,
    batch_size: int,
    seed: int,
    epoch: int,
    tokens_per_batch: int | None = None,
    sizes: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Batches of unit numbers, similar lengths together, in an order fixed by (seed, epoch).

    Units are sorted by jittered lengths, cut into batches, and the batches shuffled.

    Args:
        lengths: word pieces of every unit, [N].
        batch_size: rows per batch; not used with `tokens_per_batch`.
        seed: of the data order.
        epoch: counted from 0.
        tokens_per_batch: the most word pieces of a batch, padding included; a single unit that is
            longer makes a batch of its own.
        sizes: how many rows each unit has, [N]; one if not given. A unit of more than
            `batch_size` rows makes a batch of its own.

    Yields:
        Unit numbers of a batch, [B]; every unit comes exactly once.
    """
    rng = np.random.default_rng([seed, epoch])
    jitter = rng.uniform(1 - BUCKET_NOISE, 1 + BUCKET_NOISE, size=len(lengths))
    batches = _cut(np.argsort(lengths * jitter), lengths, batch_size, tokens_per_batch, sizes)
    for at in rng.permutation(len(batches)):
        yield batches[at]


def ordered_batches(
    lengths: np.ndarray,
    batch_size: int,
    tokens_per_batch: int | None = None,
    sizes: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Batches of row numbers from longest to shortest: for evaluation and for filling the cache.

    The arguments are those of `shuffled_batches`. What does not fit into memory fails at once.
    """
    order = np.argsort(-lengths, kind="stable")
    yield from _cut(order, lengths, batch_size, tokens_per_batch, sizes)


def _long(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))


def check_tokenizer(tokenizer: Tokenizer, max_length: int, pairs: bool) -> None:
    """Refuses what cannot be batched.

    Raises:
        ModelError: the tokenizer is not a fast one or cannot pad.
        ConfigError: `max_length` leaves no room for the text.
    """
    name = tokenizer.name_or_path or type(tokenizer).__name__
    if not tokenizer.is_fast:
        raise ModelError(f"The tokenizer of {name} has no fast version (tokenizer.json).")
    if tokenizer.pad_token_id is None:
        raise ModelError(
            f"The tokenizer of {name} has no padding token, so rows of different lengths cannot "
            "share a batch; choose an encoder of the BERT family."
        )
    special = tokenizer.num_special_tokens_to_add(pair=pairs)
    least = special + (2 if pairs else 1)
    if max_length < least:
        raise ConfigError(
            f"max_length is {max_length}; with the {special} special word pieces of {name} it must "
            f"be {least} or more."
        )


def _encode(
    examples: Examples, rows: slice, tokenizer: Tokenizer, max_length: int
) -> BatchEncoding:
    pairs = None if examples.pairs is None else list(examples.pairs[rows])
    encoded: BatchEncoding = tokenizer(
        list(examples.texts[rows]),
        pairs,
        truncation="longest_first",
        max_length=max_length,
        return_attention_mask=False,
    )
    return encoded


def identity_of(examples: Examples, tokenizer: Tokenizer, max_length: int, *more: object) -> str:
    """A hash of the tokenizer, the limit, the data and what `more` there is: of equal pieces."""
    backend: Any = tokenizer
    rules = json.loads(backend.backend_tokenizer.to_str())
    for state in ("truncation", "padding"):  # left by earlier calls
        rules.pop(state, None)
    facts = [rules, tokenizer.model_input_names, max_length, examples.digest(), *more]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _second_start(sequence_ids: Sequence[int | None]) -> int:
    """Where the second text of a pair starts: at its first piece, or at the end if it has none."""
    start = sequence_ids.index(1) if 1 in sequence_ids else len(sequence_ids) - 1
    return max(1, start)  # so that neither side is empty


def _cut(
    order: np.ndarray,
    lengths: np.ndarray,
    batch_size: int,
    tokens_per_batch: int | None,
    sizes: np.ndarray | None = None,
) -> Sequence[np.ndarray]:
    """Cuts units in their order into batches of `batch_size` rows, or of padded word pieces."""
    if tokens_per_batch is None and sizes is None:
        return [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
    rows_of = np.ones(len(lengths), dtype=int) if sizes is None else sizes
    starts: list[int] = []
    longest = rows = 0
    for at, (length, size) in enumerate(
        zip(lengths[order].tolist(), rows_of[order].tolist(), strict=True)
    ):
        longest, rows = max(longest, length), rows + size
        if tokens_per_batch is None:
            full = rows > batch_size
        else:
            full = bool(starts) and longest * (at - starts[-1] + 1) > tokens_per_batch
        if full or not starts:
            starts.append(at)
            longest, rows = length, size
    return np.split(order, starts[1:])
