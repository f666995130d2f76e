"""What does not fit into memory is done in smaller parts."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from totune.errors import RunError


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
    # Not in the handler: there the error's traceback still holds what was computed.
    undo()
    clear_device_cache(garbage_collection=True)
    return False


def _ran_out(error: Exception) -> bool:
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or bool(should_reduce_batch_size(error))


def cut(units: np.ndarray, parts: int) -> list[np.ndarray]:
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
        work: may be done again on units that it has begun with.
        lengths: word pieces of every unit.
        tell: told of every halving.

    Raises:
        RunError: if a single unit does not fit.
    """
    parts = 1
    for batch in batches:
        waiting = cut(batch, parts)
        while waiting:
            if fits(partial(work, waiting[0])):
                del waiting[0]
                continue
            if len(waiting[0]) == 1:
                raise single_does_not_fit(int(lengths[waiting[0][0]]))
            parts *= 2
            tell(f"{size_of(waiting[0], lengths)} did not fit into memory: batches are halved.")
            waiting = [half for units in waiting for half in cut(units, 2)]


def size_of(units: np.ndarray, lengths: np.ndarray) -> str:
    """Units [B] and their word pieces in words: "32 rows of 60 word pieces"."""
    return f"{len(units)} row{'s' * (len(units) > 1)} of {int(lengths[units].max())} word pieces"


def single_does_not_fit(length: int) -> RunError:
    """The fault that no smaller batch can mend."""
    return RunError(
        f"a single row of {length} word pieces does not fit into memory, so no batch size would "
        "help. Use a smaller `max_length`, `precision='bf16'` or a smaller encoder."
    )
