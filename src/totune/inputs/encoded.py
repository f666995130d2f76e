"""What batches are made of: units of encoder inputs and of the rows that are read from them.

| rows | a unit |
|---|---|
| single texts, pairs encoded jointly | one input, one row |
| pairs encoded separately | two inputs, one row |
| sentences whose words are tagged | one input: some sentences of a document and their context |
| a sentence longer than the encoder | overlapping inputs, one row |

Every input is encoded once, and every row is read once.
"""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

import numpy as np
import torch

from totune.data.examples import Examples
from totune.inputs.batches import Batch, Encodings, TokenIndex, tokenize
from totune.inputs.tokenizer import Tokenizer
from totune.inputs.windows import Windows, windows

PairEncoding = Literal["joint", "separate"]


@dataclass(frozen=True)
class EncodingOptions:
    """How rows become encoder inputs (Peters et al. 2019, A.1 and Table 4).

    Attributes:
        pair_encoding: both texts of a pair in one input of two segments, or each alone.
        document_context: whether sentences whose words are tagged are encoded with the sentences
            around them, where documents are known.
    """

    pair_encoding: PairEncoding = "joint"
    document_context: bool = True


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths, end to end: row i is values[offsets[i]:offsets[i + 1]]."""

    values: np.ndarray
    offsets: np.ndarray

    def padded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows [S] as values [S, L], 0 on padding, and their mask."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        at = np.where(inside, starts[:, None] + columns, 0)
        return np.where(inside, self.values[at], 0), inside


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
        firsts = np.concatenate([[0], np.cumsum(self.counts)])
        object.__setattr__(self, "_firsts", firsts)

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


def frame(
    examples: Examples,
    tokenizer: Tokenizer,
    max_length: int,
    encoding_options: EncodingOptions = EncodingOptions(),
) -> EncodedSplit:
    """Cuts every row into word pieces and arranges them as `encoding_options` says.

    Args:
        examples: the rows.
        tokenizer: a fast one, with a padding token.
        max_length: of an input in word pieces, special ones included. A text or pair that is
            longer is cut; a sentence whose words are tagged never is.
        encoding_options: what is encoded together.

    Raises:
        ModelError: the tokenizer is not a fast one or cannot pad.
        ConfigError: `max_length` leaves no room for the text.
    """
    if examples.words is not None:
        context = encoding_options.document_context
        return _of_windows(windows(examples, tokenizer, max_length, context))
    if examples.pairs is not None and encoding_options.pair_encoding == "separate":
        texts = tuple(chain.from_iterable(examples))
        return _separate(tokenize(Examples(texts), tokenizer, max_length))
    return plain_units(tokenize(examples, tokenizer, max_length))


def plain_units(pieces: Encodings) -> EncodedSplit:
    """A unit for each input: single texts, or pairs encoded jointly."""
    numbers = np.arange(len(pieces) + 1)
    sides: tuple[Ragged, ...] = ()
    if pieces.second_starts is not None:
        starts, ends = pieces.offsets[:-1], pieces.offsets[1:]
        middle = starts + pieces.second_starts
        sides = (_spans(starts, middle), _spans(middle, ends))
    return EncodedSplit(pieces, numbers, numbers, np.ones(len(pieces), dtype=np.int64), sides)


def _separate(pieces: Encodings) -> EncodedSplit:
    """A unit for every two inputs, the first and the second text of a pair."""
    pairs = len(pieces) // 2
    starts, ends = pieces.offsets[:-1], pieces.offsets[1:]
    sides = tuple(_spans(starts[side::2], ends[side::2]) for side in (0, 1))
    inputs = np.arange(0, len(pieces) + 1, 2)
    return EncodedSplit(pieces, inputs, np.arange(pairs + 1), np.ones(pairs, dtype=np.int64), sides)


def _of_windows(found: Windows) -> EncodedSplit:
    return EncodedSplit(
        pieces=found.pieces,
        inputs=found.inputs,
        rows=found.rows,
        counts=np.diff(found.word_offsets),
        sides=(Ragged(found.places, found.place_offsets),),
        words=Ragged(found.word_starts, found.word_offsets),
    )


def _spans(starts: np.ndarray, ends: np.ndarray) -> Ragged:
    """The places from each start up to its end."""
    offsets = np.concatenate([[0], np.cumsum(ends - starts)])
    values = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], ends - starts)
    return Ragged(values, offsets)


def _ranges(offsets: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The numbers offsets[i] .. offsets[i + 1] - 1 for every i of `at`, end to end."""
    starts = offsets[at]
    lengths = offsets[at + 1] - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.repeat(starts - ends + lengths, lengths) + np.arange(total))


def _as_places(at: np.ndarray, inside: np.ndarray) -> TokenIndex:
    return TokenIndex(torch.from_numpy(at.astype(np.int64)), torch.from_numpy(inside))
