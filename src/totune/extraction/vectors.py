"""From rows to vectors: the frozen encoder, run as for the cache of frozen features."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from totune.data.examples import Examples
from totune.encoders.loading import Loaded
from totune.encoders.mixing import View
from totune.errors import RunError
from totune.features.fill import TOKENS_ON_CPU, Job
from totune.features.rows import Layout
from totune.inputs.batches import Encodings, ordered_batches, tokenize
from totune.machine import Precision
from totune.progress import Bar, Progress


@dataclass(frozen=True)
class Vectors:
    """The vectors of N rows.

    Attributes:
        numbers: [N, D, H] pooled over tokens, else [tokens of all rows, D, H].
        offsets: of every token: row i has numbers[offsets[i]:offsets[i + 1]], [N + 1]; None where
            tokens are pooled.
        truncated: how many rows were cut.
    """

    numbers: np.ndarray
    offsets: np.ndarray | None
    truncated: int


@dataclass(frozen=True)
class Embedder:
    """A frozen encoder, and what is read of it.

    Batches are made of rows of similar lengths, of those that are embedded together; which they
    are changes a row's vector by no more than rounding.
    """

    loaded: Loaded
    view: View
    max_length: int
    precision: Precision
    dtype: str

    def embed(self, examples: Examples, progress: Progress) -> Vectors:
        """The vectors of some rows; a bar advances with every batch.

        Raises:
            RunError: a number is too large for float16.
        """
        pieces = tokenize(examples, self.loaded.tokenizer, self.max_length)
        bf16 = self.precision == "bf16"
        layout = Layout.of(pieces, self.view, self.loaded.encoder.width, bf16)
        numbers = self._typed(self._numbers(pieces, layout, progress))
        if self.view.reduction is not None:
            shape = (len(pieces), layout.depths, layout.width)
            return Vectors(numbers.reshape(shape), None, pieces.truncated)
        by_token = _by_token(numbers, pieces, layout)
        return Vectors(by_token, np.asarray(layout.bounds, dtype=np.int64), pieces.truncated)

    def _numbers(self, pieces: Encodings, layout: Layout, progress: Progress) -> np.ndarray:
        """All numbers of some rows, flat, in float32."""
        encoder, bf16 = self.loaded.encoder, self.precision == "bf16"
        filled = with_full_batches(pieces) if bf16 and encoder.device.type == "cpu" else pieces
        job_layout = Layout.of(filled, self.view, encoder.width, bf16)
        job = Job(encoder, filled, self.view, bf16, job_layout, "")
        with progress.bar("", len(pieces)) as bar:
            numbers = job.numbers(OnOneBar(progress, _AtMost(bar, len(pieces))))
        flat = torch.from_numpy(numbers[: layout.count])
        wide: np.ndarray = flat.view(layout.dtype).float().numpy()
        return wide

    def _typed(self, numbers: np.ndarray) -> np.ndarray:
        if self.dtype == "float32":
            return numbers
        largest = float(np.abs(numbers).max(initial=0))
        if largest > float(np.finfo(np.float16).max):
            raise RunError(
                f"A vector holds {largest:,.0f}, and float16 ends at 65,504: use `dtype='float32'`."
            )
        return numbers.astype(np.float16)


def with_full_batches(pieces: Encodings) -> Encodings:
    """The same rows and, after them, copies of the shortest that fill up the last batch.

    In bfloat16 a processor's library (oneDNN) keeps code for every shape of a batch it has met, and
    gives none back. The last batch of a shard would be another one each time.
    """
    *_, last = ordered_batches(pieces.lengths, TOKENS_ON_CPU, TOKENS_ON_CPU)
    missing = TOKENS_ON_CPU // int(pieces.lengths[last[0]]) - len(last)
    if missing <= 0:
        return pieces
    start, end = pieces.offsets[last[-1]], pieces.offsets[last[-1] + 1]
    ends = pieces.offsets[-1] + (end - start) * np.arange(1, missing + 1)
    types = pieces.token_type_ids

    def more(column: np.ndarray) -> np.ndarray:
        return np.concatenate([column, np.tile(column[start:end], missing)])

    return replace(
        pieces,
        input_ids=more(pieces.input_ids),
        offsets=np.concatenate([pieces.offsets, ends]),
        token_type_ids=None if types is None else more(types),
        second_starts=None,
    )


def _by_token(numbers: np.ndarray, pieces: Encodings, layout: Layout) -> np.ndarray:
    """[tokens, D, H] from rows of [D, T_i, H], end to end."""
    found = np.empty((int(layout.bounds[-1]), layout.depths, layout.width), dtype=numbers.dtype)
    for row, length in enumerate(pieces.lengths):
        place = numbers[layout.start(row) : layout.start(row + 1)]
        states = place.reshape(layout.depths, length, layout.width)
        found[layout.bounds[row] : layout.bounds[row + 1]] = states.swapaxes(0, 1)
    return found


class OnOneBar(Progress):
    """Counts what the parts of the work do on the bar of the whole."""

    def __init__(self, whole: Progress, bar: Bar) -> None:
        self._bar = bar
        self.say = whole.say  # type: ignore[method-assign]
        self.warn = whole.warn  # type: ignore[method-assign]

    @contextmanager
    def bar(self, description: str, total: int | None, unit: str = "") -> Iterator[Bar]:
        yield self._bar


class _AtMost:
    """A bar that counts no further than so many."""

    def __init__(self, bar: Bar, left: int) -> None:
        self._bar, self._left = bar, left

    def advance(self, count: int = 1) -> None:
        counted = min(count, self._left)
        self._left -= counted
        self._bar.advance(counted)
