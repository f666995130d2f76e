"""Jobs in other processes: handing them out, following them, and retrying those that died."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from threadpoolctl import threadpool_limits

from totune.machine import usable_cores
from totune.progress import Progress
from totune.runs.context import Context
from totune.runs.executors.base import Job
from totune.runs.executors.transfer import Event, EventReceiver, Raised, Returned
from totune.runs.store import Store

TRIES = 3  # of a job whose worker dies: the job itself may be what kills it

# What reads them: OpenMP (torch, scikit-learn, Arrow), MKL, OpenBLAS, Accelerate, and tokenizers.
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "RAYON_NUM_THREADS",
)


@dataclass(eq=False)
class Attempt:
    """A job that has begun, and how many workers have died over it."""

    job: Job
    deaths: int = 0


@dataclass(frozen=True)
class Died:
    """A worker has ended before its job had."""

    how: str  # "was killed (SIGKILL)"


class Pool(Protocol):
    """Workers that run one job each."""

    def dispatch(self, queue: "JobQueue") -> bool:
        """Starts jobs while there is room for them; False if none is left to wait for."""

    def poll(self) -> Iterator[tuple[Attempt, Event | Returned | Raised | Died]]:
        """Waits, then yields what workers have sent and how they have ended."""


class JobQueue:
    """Jobs in their order, before them those whose worker has died.

    Args:
        jobs: what is to be done.
        may_begin: called right before a job begins for the first time.
        progress: gets the title of what begins, and a warning for each worker that has died.
        remark: what is said after a title.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        may_begin: Callable[[Job], bool],
        progress: Progress,
        remark: Callable[[], str] = str,
    ) -> None:
        self.total, self._remark = len(jobs), remark
        self._jobs, self._may_begin, self._progress = deque(jobs), may_begin, progress
        self._retries: deque[Attempt] = deque()

    def next(self) -> Attempt | None:
        """The next job to begin; None if none is waiting."""
        if self._retries:
            return self._retries.popleft()
        while self._jobs:
            job = self._jobs.popleft()
            if self._may_begin(job):
                self._progress.say(job.title + self._remark())
                return Attempt(job)
        return None

    def retry(self, attempt: Attempt, how: str) -> str | None:
        """Puts back a job whose worker has died, or returns the reason why it is given up.

        Args:
            attempt: the job.
            how: the end of its worker: "was killed (SIGKILL)".
        """
        attempt.deaths += 1
        if attempt.deaths >= TRIES:
            return (
                f"it was given up after {attempt.deaths} workers had died over it; the last one "
                f"{how}. Where memory is short, use fewer `jobs` or a smaller "
                "`per_device_train_batch_size`."
            )
        self._progress.warn(
            f"{attempt.job.title}: its worker {how}; another one goes on from the last epoch."
        )
        self._retries.append(attempt)
        return None


def follow(
    pool: Pool, queue: JobQueue, context: Context, store: Store
) -> Iterator[tuple[Job, Any]]:
    """Runs every job of a queue in a pool, and yields each with its result.

    Raises:
        Exception: what a job raised.
    """
    receiver = EventReceiver(context)
    with context.progress.bar("runs", queue.total) as bar:
        while pool.dispatch(queue):
            for attempt, message in pool.poll():
                job = attempt.job
                match message:
                    case Event():
                        receiver.receive(job.title, message)
                    case Raised():
                        raise message.error
                    case Returned():
                        bar.advance()
                        yield job, message.value
                    case Died():
                        given_up = queue.retry(attempt, message.how)
                        if given_up is not None:
                            bar.advance()
                            yield job, job.fail(given_up, context, store)


def threads_of_each(processes: int) -> int:
    """The threads of each of several processes, which share the cores that this one may use.

    None gets more than this process has, so OMP_NUM_THREADS limits them as it limits one.
    """
    share = usable_cores() // processes
    return max(1, min(share, torch.get_num_threads()))


def thread_variables(count: int) -> dict[str, str]:
    """Environment variables that limit a new process to `count` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(count))


def use_threads(count: int) -> None:
    """Limits this process to `count` threads, in libraries that are loaded and that will be."""
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
