"""The jobs that wait for a worker, and what becomes of those whose worker dies."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from totune.progress import Progress
from totune.runs.executors.base import Job

TRIES = 3  # of a job whose worker dies: it may be what kills it


@dataclass(eq=False)
class Attempt:
    """A job that has begun, and how many workers have died over it."""

    job: Job
    deaths: int = 0


class Waiting:
    """Hands out jobs in their order, before them those whose worker has died.

    Args:
        jobs: what is to be done.
        may_begin: asked right before a job begins for the first time.
        progress: told what begins.
    """

    def __init__(
        self, jobs: Sequence[Job], may_begin: Callable[[Job], bool], progress: Progress
    ) -> None:
        self._jobs, self._may_begin, self._progress = deque(jobs), may_begin, progress
        self._again: deque[Attempt] = deque()

    def next(self) -> Attempt | None:
        """What a worker is to do now; None if nothing waits."""
        if self._again:
            return self._again.popleft()
        while self._jobs:
            job = self._jobs.popleft()
            if self._may_begin(job):
                self._progress.say(job.title)
                return Attempt(job)
        return None

    def again(self, attempt: Attempt, how: str) -> str | None:
        """Takes back a job whose worker has died, or gives the reason why it is given up.

        Args:
            attempt: what the worker was at.
            how: it ended: "was killed (SIGKILL)".
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
        self._again.append(attempt)
        return None
