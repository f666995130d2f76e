"""Who does the work of a study: this process, several on this machine, or a cluster.

A job is plain data that can be sent anywhere: it gets what the runs of a study share, and a store.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from totune.errors import RunError
from totune.runs.context import Context
from totune.runs.store import Store


@dataclass(frozen=True)
class Job(ABC):
    """A piece of work that ends with a result.

    Attributes:
        title: what is said when it begins: "run 3/24: last-2, seed 1".
    """

    title: str

    @property
    def folder(self) -> str | None:
        """The folder within the store for the job's checkpoint and files; None if it has none.

        An executor that works on another machine copies it there and back.
        """
        return None

    @abstractmethod
    def run(self, context: Context, store: Store) -> Any:
        """Does the work.

        The result can be sent between processes. A job that is interrupted starts again from the
        beginning, or from the checkpoint in its folder.
        """

    def fail(self, error: str, context: Context, store: Store) -> Any:
        """The result of a job that every process it was given to has died over.

        Raises:
            RunError: if a study cannot go on without it.
        """
        raise RunError(f"{self.title}: {error}")


class Executor(ABC):
    """Does jobs, one or several at once."""

    @abstractmethod
    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
        remark: Callable[[], str] = str,
    ) -> Iterator[tuple[Job, Any]]:
        """Begins jobs in their order, and yields each with its result when it has ended.

        Wherever a job runs, its notes, warnings and events reach `context.progress` and
        `context.callback` in this process.

        Args:
            jobs: what is to be done.
            context: what the jobs share.
            store: where their files belong.
            may_begin: called right before a job begins; the job is left out if it returns False.
            remark: what is said after a job's title when it begins.
        """


class SerialExecutor(Executor):
    """One job after the other, in this process."""

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
        remark: Callable[[], str] = str,
    ) -> Iterator[tuple[Job, Any]]:
        for job in jobs:
            if may_begin(job):
                context.progress.say(job.title + remark())
                yield job, job.run(context, store)
