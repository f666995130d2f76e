"""Several processes on this machine, which share out its cores, or its GPUs."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from totune.errors import RunError
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job
from totune.runs.executors.messages import Delivery, Message
from totune.runs.executors.outcomes import Raised, Result
from totune.runs.executors.pool import Pool, Worker
from totune.runs.executors.shipping import CachePlace, pack
from totune.runs.executors.threads import threads_of_each
from totune.runs.executors.waiting import Waiting
from totune.runs.executors.working import Ready
from totune.runs.store import Store


class Processes(Executor):
    """Processes of their own, which write into the study's folder themselves.

    Each has an equal share of the cores. A worker that dies is replaced, and its job taken up
    from its last epoch. The numbers are those of one process that has as many threads.

    Args:
        jobs: how many processes.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
    ) -> Iterator[tuple[Job, Any]]:
        if not jobs:
            return
        waiting = Waiting(jobs, may_begin, context.progress)
        listening = _Listening(context, store, waiting)
        with (
            tempfile.TemporaryDirectory(prefix="totune-") as place,
            context.progress.bar("runs", len(jobs)) as bar,
        ):
            bundle = Path(place) / "shared.pickle"
            cache = CachePlace(context.cache.root.resolve(), context.cache.budget_bytes)
            bundle.write_bytes(pack(context, cache))
            threads = threads_of_each(self._jobs)
            with Pool(self._jobs, bundle, store.folder.resolve(), threads) as pool:
                while pool.employ(waiting):
                    for worker in pool.heard():
                        for done in listening.hear(worker, pool):
                            bar.advance()
                            yield done


class _Listening:
    """What is done about what a worker says."""

    def __init__(self, context: Context, store: Store, waiting: Waiting) -> None:
        self._context, self._store, self._waiting = context, store, waiting
        self._deliver = Delivery(context)
        self._began = False  # whether any worker ever did

    def hear(self, worker: Worker, pool: Pool) -> Iterator[tuple[Job, Any]]:
        """Acts on one message; gives a job that has ended with it.

        Raises:
            RunError: if workers cannot be started.
            Exception: what a job raised.
        """
        said, attempt = worker.receive(), worker.attempt
        match said:
            case Ready():
                self._began = True
            case Raised():
                raise said.error
            case Message() if attempt is not None:
                self._deliver(attempt.job, said)
            case Result() if attempt is not None:
                worker.attempt = None
                yield attempt.job, said.value
            case None:
                yield from self._bury(worker, pool)

    def _bury(self, worker: Worker, pool: Pool) -> Iterator[tuple[Job, Any]]:
        how = pool.bury(worker)
        if not self._began:
            raise RunError(
                f"A worker process {how} before it could begin. Is there memory for another copy "
                "of the encoder? A script that calls totune must do so under "
                "`if __name__ == '__main__':`, since every worker imports it."
            )
        attempt = worker.attempt
        if attempt is None:
            return
        if attempt.job.folder is not None:
            _sweep(self._store.folder / attempt.job.folder, worker.pid)
        given_up = self._waiting.again(attempt, how)
        if given_up is not None:
            yield attempt.job, attempt.job.fail(given_up, self._context, self._store)


def _sweep(folder: Path, pid: int) -> None:
    """Removes what a killed process was writing."""
    for path in folder.glob(f"*.{pid}.tmp"):
        with suppress(OSError):
            path.unlink()
