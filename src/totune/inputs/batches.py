"""Batches: units of similar lengths, padded; halved where one does not fit into memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from totune.errors import RunError
from totune.text import counted

BUCKET_NOISE = 0.1  # share of a length by which sorting keys are jittered, so batches vary


@dataclass(frozen=True)
class TokenIndex:
    """Places of tokens in S sequences, padded to T.

    Attributes:
        at: [S, T], 0 on padding.
        mask: [S, T] bool, true on places: a prefix of every row.
    """

    at: Tensor
    mask: Tensor

    @property
    def counts(self) -> Tensor:
        """Number of places of each sequence, [S]."""
        return self.mask.sum(dim=1)

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


def fits(work: Callable[[], object], undo: Callable[[], object] = lambda: None) -> bool:
    """Does `work`; False if it ran out of memory, and nothing of it is held any more.

    Args:
        work: what it computes it keeps elsewhere.
        undo: called where memory ran out, before what is free is given back to the device.
    """
    try:
        work()
        return True
    except (RuntimeError, MemoryError) as error:
        if not _ran_out(error):
            raise
    from accelerate.utils.memory import clear_device_cache

    # Not in the handler: there the error's traceback still holds what was computed.
    undo()
    clear_device_cache(garbage_collection=True)
    return False


def _ran_out(error: Exception) -> bool:
    from accelerate.utils.memory import should_reduce_batch_size

    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or bool(should_reduce_batch_size(error))


def split_units(units: np.ndarray, parts: int) -> list[np.ndarray]:
    """Units [B] in up to `parts` stretches of about one size, none of them empty."""
    return [part for part in np.array_split(units, parts) if len(part)]


def in_halves(
    batches: Iterable[np.ndarray],
    work: Callable[[np.ndarray], object],
    lengths: np.ndarray,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Does `work` on every batch; where one does not fit, it and all later ones are halved.

    Args:
        batches: unit numbers, [B] each.
        work: has to bear being repeated on units that it has started with.
        lengths: word pieces of every unit.
        tell: receives a sentence at every halving.

    Raises:
        RunError: if a single unit does not fit.
    """
    parts = 1
    for batch in batches:
        waiting = split_units(batch, parts)
        while waiting:
            if fits(partial(work, waiting[0])):
                del waiting[0]
                continue
            if len(waiting[0]) == 1:
                raise single_does_not_fit(int(lengths[waiting[0][0]]))
            parts *= 2
            tell(f"{size_of(waiting[0], lengths)} did not fit into memory: batches are halved.")
            waiting = [half for units in waiting for half in split_units(units, 2)]


def size_of(units: np.ndarray, lengths: np.ndarray) -> str:
    """Units [B] and their word pieces in words: "32 rows of 60 word pieces"."""
    return f"{counted(len(units), 'row')} of {int(lengths[units].max())} word pieces"


def single_does_not_fit(length: int) -> RunError:
    """The error that no smaller batch avoids."""
    return RunError(
        f"a single row of {length} word pieces does not fit into memory, so no batch size would "
        "help. Use a smaller `max_length`, `precision='bf16'` or a smaller encoder."
    )
