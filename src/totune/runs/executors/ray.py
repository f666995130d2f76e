"""A Ray cluster: jobs on its machines, their files in the study's folder here."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np

from totune.errors import ConfigError, RunError
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job
from totune.runs.executors.carrying import mirror, read_files
from totune.runs.executors.messages import Delivery, Message
from totune.runs.executors.outcomes import Raised, Result
from totune.runs.executors.ray_session import (
    Needs,
    capacity,
    check_capacity,
    connected,
    has_gpus,
)
from totune.runs.executors.ray_worker import Assignment, Carried, Keeper
from totune.runs.executors.shipping import CachePlace, pack
from totune.runs.executors.threads import threads_of_each
from totune.runs.executors.waiting import Attempt, Waiting
from totune.runs.store import Store

GRACE = 5.0  # seconds that interrupted workers have to end
POLL = 0.5  # seconds between two looks at what workers have said
_DEATHS = {
    "WorkerCrashedError": "died",
    "NodeDiedError": "died with its machine",
    "OutOfMemoryError": "was ended by Ray when memory ran out",
}
PACKAGES = ("totune", "torch", "transformers")  # must be the same on every machine


class RayCluster(Executor):
    """Jobs as tasks of Ray, each with its share of a machine.

    A job works in a folder of its own machine. After every epoch its checkpoint is written into
    the study's folder, so that a worker or a machine that dies costs the unfinished epoch alone.

    Args:
        address: of the cluster; None for $RAY_ADDRESS, or else one that is started on this
            machine for the study.
        cpus_per_run: processors that a run reserves, and threads that it has; None for an equal
            share of this machine's cores among `jobs`.
        gpus_per_run: GPUs that it reserves; None for one, if the cluster has any.
        jobs: how many runs would share this machine.
        cache: where workers keep frozen features; by default each machine has its own place.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_run: float | None = None,
        gpus_per_run: float | None = None,
        jobs: int = 1,
        cache: CachePlace | None = None,
    ) -> None:
        self._address, self._cpus, self._gpus = address, cpus_per_run, gpus_per_run
        self._jobs, self._cache = jobs, cache or CachePlace()

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
    ) -> Iterator[tuple[Job, Any]]:
        if not jobs:
            return
        waiting, deliver = Waiting(jobs, may_begin, context.progress), Delivery(context)
        cpus = self._cpus or threads_of_each(self._jobs)
        with (
            connected(self._address, cpus) as ray,
            context.progress.bar("runs", len(jobs)) as bar,
        ):
            gpus = float(has_gpus(ray)) if self._gpus is None else self._gpus
            needs = Needs(cpus, gpus)
            check_capacity(ray, needs)
            with _Crew(ray, needs, pack(context, self._cache), store) as crew:
                while crew.employ(waiting):
                    for attempt, said in crew.heard():
                        if isinstance(said, Message):
                            deliver(attempt.job, said)
                            continue
                        for done in _settle(attempt, said, waiting, context, store):
                            bar.advance()
                            yield done


def _settle(
    attempt: Attempt, said: Any, waiting: Waiting, context: Context, store: Store
) -> Iterator[tuple[Job, Any]]:
    """Acts on how an attempt ended; gives the job if that ended it."""
    job = attempt.job
    match said:
        case Raised():
            raise said.error
        case Result(value=Carried() as carried):
            if job.folder is not None:
                mirror(carried.files, store.folder / job.folder)
            yield job, carried.value
        case str() as how:
            given_up = waiting.again(attempt, how)
            if given_up is not None:
                yield job, job.fail(given_up, context, store)
        case dict() as found:
            raise ConfigError(
                f"A machine of the Ray cluster has {_listed(found)}, this one "
                f"{_listed(_versions())}: install the same versions on all."
            )


class _Crew:
    """The tasks that are under way; a context manager, which ends them."""

    def __init__(self, ray: ModuleType, needs: Needs, bundle: bytes, store: Store) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._needs, self._folder = ray, needs, store.folder.resolve()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        keeper = ray.remote(Keeper).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here)
        self._keeper = keeper.remote(str(self._folder))
        self._study = uuid.uuid4().hex
        self._bundle = _put(ray, bundle)
        self._task = _task(ray).options(
            num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=0, scheduling_strategy="SPREAD"
        )
        self._running: dict[Any, Attempt] = {}
        self._attempts: list[Attempt] = []

    def __enter__(self) -> "_Crew":
        return self

    def __exit__(self, *_: object) -> None:
        running = list(self._running)
        for force in (False, True):  # one that is interrupted still removes its folder
            for reference in running:
                self._ray.cancel(reference, force=force)
            if running:
                self._ray.wait(running, num_returns=len(running), timeout=GRACE)
        self._ray.kill(self._keeper)

    def employ(self, waiting: Waiting) -> bool:
        """Sends as many jobs as the machines can hold; false if nothing is left to wait for."""
        room = max(1, capacity(self._ray, self._needs))
        while len(self._running) < room and (attempt := waiting.next()) is not None:
            self._send(attempt)
        return bool(self._running)

    def heard(self) -> Iterator[tuple[Attempt, Any]]:
        """Waits a little; messages, then how attempts ended, a string if their worker died."""
        ended, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=POLL)
        for number, message in self._ray.get(self._keeper.take.remote()):
            yield self._attempts[number], message
        for reference in ended:
            yield self._running.pop(reference), self._end_of(reference)

    def _end_of(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            raise RunError(f"A worker of the Ray cluster cannot work: {error.cause!r}") from None
        except errors.RayError as error:
            name = type(error).__name__
            return _DEATHS.get(name, f"was lost ({name})")

    def _send(self, attempt: Attempt) -> None:
        if attempt not in self._attempts:
            self._attempts.append(attempt)
        job, number = attempt.job, self._attempts.index(attempt)
        assignment = Assignment(job, number, self._study, self._needs.threads)
        folder = None if job.folder is None else self._folder / job.folder
        files = {} if folder is None or not folder.is_dir() else read_files(folder)
        reference = self._task.remote(
            _versions(),
            self._ray.cloudpickle.dumps(assignment),
            self._bundle,
            self._ray.put(files),
            self._keeper,
        )
        self._running[reference] = attempt


def _put(ray: ModuleType, bundle: bytes) -> Any:
    """Lays what the runs share into Ray's object store, once for all machines.

    Raises:
        ConfigError: if it is too large for it.
    """
    try:
        return ray.put(np.frombuffer(bundle, dtype=np.uint8))
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
        raise ConfigError(
            f"Ray's object store has no room for what the runs share, {len(bundle) / 1e6:,.0f} MB "
            "of encoder and data: start its machines with a larger --object-store-memory."
        ) from None


def _task(ray: ModuleType) -> Any:
    """The task: says what is installed if that is not the same, else does a job.

    A function within a function travels as code, so it also begins where totune is missing.
    """

    def totune_job(expected: dict[str, str], *work: Any) -> Any:
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for package in expected:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "none"
        if found != expected:
            return found
        from totune.runs.executors.ray_worker import perform

        return perform(*work)

    return ray.remote(totune_job)


def _versions() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {number}" for package, number in versions.items())
