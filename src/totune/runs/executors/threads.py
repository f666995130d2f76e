"""How the processor's cores are shared out to the processes of a study."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from totune.machine import usable_cores

# What reads them: OpenMP (torch, scikit-learn, Arrow), MKL, OpenBLAS, Accelerate, and tokenizers.
_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "RAYON_NUM_THREADS",
)


def threads_of_each(processes: int) -> int:
    """The threads of each of several processes, which share the cores that this one may use.

    None gets more than this process has, so OMP_NUM_THREADS sets them as it does for one.
    """
    share = usable_cores() // processes
    return max(1, min(share, torch.get_num_threads()))


def thread_variables(count: int) -> dict[str, str]:
    """Environment variables that hold a new process to so many threads."""
    return dict.fromkeys(_VARIABLES, str(count))


def use_threads(count: int) -> None:
    """Holds this process to so many threads, in what is loaded and in what will be."""
    os.environ.update(thread_variables(count))
    threadpool_limits(count)
    torch.set_num_threads(count)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for the processes that are started while the block runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
