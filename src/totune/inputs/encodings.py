"""Encoder inputs: word pieces of every input end to end, and the units that batches are made of.

| rows | a unit |
|---|---|
| single texts, pairs encoded jointly | one input, one row |
| pairs encoded separately | two inputs, one row |
| sentences whose words are tagged | one input: some sentences of a document and their context |
| a sentence longer than the encoder | overlapping inputs, one row |

Every input is encoded once, and every row is read once.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from totune.data.examples import Examples
from totune.errors import ConfigError, ModelError
from totune.inputs.batches import Batch, TokenIndex

if TYPE_CHECKING:
    from transformers import BatchEncoding


class Tokenizer(Protocol):
    """Cuts texts into pieces: a fast one of transformers, or our own for words and characters."""

    model_max_length: int
    name_or_path: str

    @property
    def is_fast(self) -> bool: ...

    @property
    def pad_token_id(self) -> Any: ...

    @property
    def unk_token_id(self) -> Any: ...

    @property
    def model_input_names(self) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> "BatchEncoding": ...

    def num_special_tokens_to_add(self, pair: bool = False) -> int: ...

    def save_pretrained(self, folder: Path, /) -> Any: ...


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths, end to end: row i is values[offsets[i]:offsets[i + 1]]."""

    values: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[np.ndarray]) -> "Ragged":
        return cls(np.concatenate(rows), offsets_of([len(row) for row in rows]))

    @classmethod
    def spans(cls, starts: np.ndarray, ends: np.ndarray) -> "Ragged":
        """Row i is the numbers starts[i] .. ends[i] - 1."""
        offsets = offsets_of(ends - starts)
        values = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], ends - starts)
        return cls(values, offsets)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def row(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def padded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows [S] as values [S, L], 0 on padding, and their mask."""
        at, inside = _padded(self.offsets, rows)
        return np.where(inside, self.values[at], 0), inside


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
        at, inside = _padded(self.offsets, indices)  # [B, T], places in input_ids
        ids = np.where(inside, self.input_ids[at], self.pad_token_id)
        types = self.token_type_ids
        return Batch(
            indices=np.asarray(indices),
            input_ids=_long(ids),
            attention_mask=_long(inside),
            token_type_ids=None if types is None else _long(np.where(inside, types[at], 0)),
        )


@dataclass(frozen=True)
class EncodedSplit:
    """A split as encoder inputs and rows; U units, N rows, P positions.

    Attributes:
        pieces: every encoder input.
        inputs: unit u is encoded as inputs[u] .. inputs[u + 1], [U + 1].
        rows: the rows of unit u are rows[u] .. rows[u + 1], [U + 1].
        counts: how many positions each row has, [N]: its words where words are tagged, else one.
        sides: for each row the places of its word pieces among all pieces: of a pair the first
            and the second text, of a sentence its own pieces without context; empty otherwise.
        words: where each word starts among its sentence's pieces; None where no words are tagged.
        whole: of `alone`, what was taken apart.
    """

    pieces: Encodings
    inputs: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    sides: tuple[Ragged, ...] = ()
    words: Ragged | None = None
    whole: "EncodedSplit | None" = None
    _firsts: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_firsts", offsets_of(self.counts))

    def __len__(self) -> int:
        return len(self.inputs) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Word pieces of every unit, [U]."""
        return np.diff(self.pieces.offsets[self.inputs])

    @property
    def sizes(self) -> np.ndarray:
        """Rows of every unit, [U]."""
        return np.diff(self.rows)

    def positions(self, indices: np.ndarray) -> np.ndarray:
        """The positions of units [B] among all P, in order."""
        return _ranges(self._firsts[self.rows], indices)

    def batch(self, indices: np.ndarray, sides: bool = False) -> Batch:
        """Units `indices` as a batch.

        Args:
            indices: which units, [B].
            sides: whether to say where each text or sentence lies, for heads that read tokens.
        """
        numbers = _ranges(self.inputs, indices)
        return self._batch(numbers, _ranges(self.rows, indices) if sides else None)

    def batch_of_rows(self, rows: np.ndarray) -> Batch:
        """Rows [S] as a batch that encodes the whole units they are in, each once."""
        units = np.unique(np.searchsorted(self.rows, rows, side="right") - 1)
        return self._batch(_ranges(self.inputs, units), rows)

    def alone(self) -> "EncodedSplit":
        """Every sentence as a unit of its own pieces alone, without context and special pieces.

        For heads over a frozen encoder, whose states are read from a cache: so sentences of one
        length and of different documents share a batch.
        """
        (side,) = self.sides
        pieces = replace(
            self.pieces,
            input_ids=self.pieces.input_ids[side.values],
            offsets=side.offsets,
            token_type_ids=None,
        )
        numbers = np.arange(len(side.offsets))
        here = Ragged(np.arange(len(side.values)), side.offsets)
        return EncodedSplit(pieces, numbers, numbers, self.counts, (here,), self.words, self)

    def _batch(self, numbers: np.ndarray, rows: np.ndarray | None) -> Batch:
        """Inputs `numbers`; where `rows` are read in them, if a head asks."""
        batch = self.pieces.batch(numbers)
        if rows is None or not self.sides:
            return batch
        width, words = batch.input_ids.shape[1], self.words
        return replace(
            batch,
            sides=tuple(self._places(side, rows, numbers, width) for side in self.sides),
            words=None if words is None else _as_places(*words.padded(rows)),
        )

    def _places(
        self, side: Ragged, rows: np.ndarray, numbers: np.ndarray, width: int
    ) -> TokenIndex:
        """Where the pieces of `rows` are in the flattened batch of inputs `numbers`."""
        places, inside = side.padded(rows)  # [S, T] among all pieces
        of_input = np.searchsorted(self.pieces.offsets, places, side="right") - 1
        order = np.argsort(numbers)
        found = np.searchsorted(numbers[order], of_input).clip(max=len(order) - 1)
        at = order[found] * width + places - self.pieces.offsets[of_input]
        return _as_places(np.where(inside, at, 0), inside)


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
            f"max_length={max_length} is too short: with the {special} special word pieces of "
            f"{name} it must be {least} or more."
        )


def identity_of(examples: Examples, tokenizer: Tokenizer, max_length: int, *more: object) -> str:
    """A hash of the tokenizer, the limit, the data and what `more` there is: of equal pieces."""
    backend: Any = tokenizer
    rules = json.loads(backend.backend_tokenizer.to_str())
    for state in ("truncation", "padding"):  # left by earlier calls
        rules.pop(state, None)
    facts = [rules, tokenizer.model_input_names, max_length, examples.digest(), *more]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where rows of these lengths begin and end, end to end, [N + 1]."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))])


def _padded(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of rows [S] among all values [S, L], 0 on padding, and their mask."""
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    columns = np.arange(lengths.max())
    inside = columns < lengths[:, None]
    return np.where(inside, starts[:, None] + columns, 0), inside


def _ranges(offsets: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The numbers offsets[i] .. offsets[i + 1] - 1 for every i of `at`, end to end."""
    starts = offsets[at]
    lengths = offsets[at + 1] - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.repeat(starts - ends + lengths, lengths) + np.arange(total))


def _as_places(at: np.ndarray, inside: np.ndarray) -> TokenIndex:
    return TokenIndex(torch.from_numpy(at.astype(np.int64)), torch.from_numpy(inside))


def _long(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
