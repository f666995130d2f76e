"""From rows to encoder inputs: texts and pairs cut into word pieces, words in windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

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
from totune.inputs.windows import CHUNK, windows

if TYPE_CHECKING:
    from transformers import BatchEncoding

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
        return windows(examples, tokenizer, max_length, context)
    if examples.pairs is not None and encoding_options.pair_encoding == "separate":
        texts = tuple(chain.from_iterable(examples))
        return _separate(tokenize(Examples(texts), tokenizer, max_length))
    return _joint(tokenize(examples, tokenizer, max_length))


def _joint(pieces: Encodings) -> EncodedSplit:
    """A unit for each input: single texts, or pairs encoded jointly."""
    numbers = np.arange(len(pieces) + 1)
    sides: tuple[Ragged, ...] = ()
    if pieces.second_starts is not None:
        starts, ends = pieces.offsets[:-1], pieces.offsets[1:]
        middle = starts + pieces.second_starts
        sides = (Ragged.spans(starts, middle), Ragged.spans(middle, ends))
    return EncodedSplit(pieces, numbers, numbers, np.ones(len(pieces), dtype=np.int64), sides)


def _separate(pieces: Encodings) -> EncodedSplit:
    """A unit for every two inputs, the first and the second text of a pair."""
    pairs = len(pieces) // 2
    starts, ends = pieces.offsets[:-1], pieces.offsets[1:]
    sides = tuple(Ragged.spans(starts[side::2], ends[side::2]) for side in (0, 1))
    inputs = np.arange(0, len(pieces) + 1, 2)
    return EncodedSplit(pieces, inputs, np.arange(pairs + 1), np.ones(pairs, dtype=np.int64), sides)


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
        offsets=offsets_of(lengths),
        token_type_ids=np.concatenate(types) if types else None,
        pad_token_id=int(tokenizer.pad_token_id),
        truncated=truncated,
        identity=identity_of(examples, tokenizer, max_length),
        second_starts=np.asarray(seconds) if seconds else None,
    )


def _encode(
    examples: Examples, rows: slice, tokenizer: Tokenizer, max_length: int
) -> "BatchEncoding":
    pairs = None if examples.pairs is None else list(examples.pairs[rows])
    encoded: BatchEncoding = tokenizer(
        list(examples.texts[rows]),
        pairs,
        truncation="longest_first",
        max_length=max_length,
        return_attention_mask=False,
    )
    return encoded


def _second_start(sequence_ids: Sequence[int | None]) -> int:
    """Where the second text of a pair starts: at its first piece, or at the end if it has none."""
    start = sequence_ids.index(1) if 1 in sequence_ids else len(sequence_ids) - 1
    return max(1, start)  # so that neither side is empty
