"""Work that runs out of memory is done in smaller parts, and nothing else is caught."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from totune.errors import RunError
from totune.inputs.halving import cut, fits, in_halves

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8 bytes. Error code 12 (Cannot allocate memory)"
    ),
    RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)."),
    MemoryError("Unable to allocate 8 GiB for an array"),
]


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "cpu", "mps", "numpy"])
def test_every_kind_of_memory_can_run_out(error: Exception) -> None:
    undone = []

    def work() -> None:
        raise error

    assert not fits(work, lambda: undone.append(1))
    assert undone == [1]
    assert fits(lambda: None, lambda: undone.append(2))
    assert undone == [1]


def test_the_real_allocator_runs_out() -> None:
    assert not fits(lambda: torch.empty(1 << 58))
    assert not fits(lambda: np.empty(1 << 58))


def test_another_fault_is_not_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        fits(lambda: torch.ones(2, 3) @ torch.ones(2, 3))


def room_for(limit: int, seen: list[int], done: list[int]) -> Callable[[np.ndarray], None]:
    def work(units: np.ndarray) -> None:
        seen.append(len(units))
        if len(units) > limit:
            raise torch.OutOfMemoryError
        done.extend(units.tolist())

    return work


def test_later_batches_stay_halved() -> None:
    seen, done, told = list[int](), list[int](), list[str]()
    batches = [np.arange(7), np.arange(7, 13), np.arange(13, 14)]
    in_halves(batches, room_for(3, seen, done), np.full(14, 5), told.append)
    assert done == list(range(14))
    assert seen == [7, 4, 2, 2, 2, 1, 2, 2, 1, 1, 1]
    assert told == [
        "7 rows of 5 word pieces did not fit into memory: batches are halved.",
        "4 rows of 5 word pieces did not fit into memory: batches are halved.",
    ]


def test_a_single_row_that_does_not_fit_is_told() -> None:
    lengths = np.array([3, 480, 4])
    with pytest.raises(RunError, match=r"single row of 480 word pieces.*`max_length`.*`precision="):
        in_halves([np.array([1, 0, 2])], room_for(0, [], []), lengths)


def test_no_part_is_empty() -> None:
    assert [part.tolist() for part in cut(np.arange(3), 8)] == [[0], [1], [2]]
