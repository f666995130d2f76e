"""A Ray cluster: jobs on its machines, their files in the study's folder here."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from totune.errors import ConfigError, RunError
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job
from totune.runs.executors.pool import Attempt, Died, JobQueue, follow, threads_of_each
from totune.runs.executors.ray_session import Needs, capacity, check_capacity, connected, has_gpus
from totune.runs.executors.ray_worker import Keeper
from totune.runs.executors.transfer import Event, Raised, Returned, Snapshot, mirror, read_files
from totune.runs.store import Store

GRACE = 5.0  # seconds that interrupted workers have to end
POLL_SECONDS = 0.5
_DEATHS = {
    "WorkerCrashedError": "died",
    "NodeDiedError": "died with its machine",
    "OutOfMemoryError": "was ended by Ray when memory ran out",
}
PACKAGES = ("totune", "torch", "transformers")  # must be the same on every machine


class RayExecutor(Executor):
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
        cache_dir: where workers keep frozen features; None for each machine's own default.
        cache_budget: bytes that these may take; None for each machine's own default.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_run: float | None = None,
        gpus_per_run: float | None = None,
        jobs: int = 1,
        cache_dir: Path | None = None,
        cache_budget: int | None = None,
    ) -> None:
        self._address, self._gpus = address, gpus_per_run
        self._cpus = cpus_per_run or threads_of_each(jobs)
        self._cache = cache_dir, cache_budget

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
        remark: Callable[[], str] = str,
    ) -> Iterator[tuple[Job, Any]]:
        if not jobs:
            return
        queue = JobQueue(jobs, may_begin, context.progress, remark)
        with connected(self._address, self._cpus) as ray:
            gpus = float(has_gpus(ray)) if self._gpus is None else self._gpus
            needs = Needs(self._cpus, gpus)
            check_capacity(ray, needs)
            with closing(RayPool(ray, needs, Snapshot(context, *self._cache), store)) as pool:
                yield from follow(pool, queue, context, store)


class RayPool:
    """Jobs as tasks of Ray.

    Args:
        ray: the package, connected.
        needs: what each task reserves.
        snapshot: what the jobs share.
        store: the study's.
    """

    def __init__(self, ray: ModuleType, needs: Needs, snapshot: Snapshot, store: Store) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._needs, self._folder = ray, needs, store.folder.resolve()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        keeper = ray.remote(Keeper).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here)
        self._keeper = keeper.remote(str(self._folder))
        self._study = uuid.uuid4().hex
        self._snapshot = _put(ray, snapshot)
        self._task = _task(ray).options(
            num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=0, scheduling_strategy="SPREAD"
        )
        self._running: dict[Any, Attempt] = {}
        self._attempts: list[Attempt] = []

    def close(self) -> None:
        """Ends the tasks that are under way."""
        running = list(self._running)
        for force in (False, True):  # one that is interrupted still removes its folder
            for reference in running:
                self._ray.cancel(reference, force=force)
            if running:
                self._ray.wait(running, num_returns=len(running), timeout=GRACE)
        self._ray.kill(self._keeper)

    def dispatch(self, queue: JobQueue) -> bool:
        room = max(1, capacity(self._ray, self._needs))
        while len(self._running) < room and (attempt := queue.next()) is not None:
            self._send(attempt)
        return bool(self._running)

    def poll(self) -> Iterator[tuple[Attempt, Event | Returned | Raised | Died]]:
        """As `Pool.poll`.

        Raises:
            ConfigError: if a machine has other versions of packages.
            RunError: if a worker cannot work.
        """
        running = list(self._running)
        ended, _ = self._ray.wait(running, num_returns=len(running), timeout=POLL_SECONDS)
        for number, event in self._ray.get(self._keeper.take.remote()):
            yield self._attempts[number], event
        for reference in ended:
            attempt = self._running.pop(reference)
            yield attempt, self._result(attempt.job, reference)

    def _result(self, job: Job, reference: Any) -> Returned | Raised | Died:
        """How a task has ended; the files of its job are then in the study's folder."""
        errors = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except errors.RayTaskError as error:
            raise RunError(f"A worker of the Ray cluster cannot work: {error.cause!r}") from None
        except errors.RayError as error:
            name = type(error).__name__
            return Died(_DEATHS.get(name, f"was lost ({name})"))
        if isinstance(found, dict):
            raise ConfigError(
                f"A machine of the Ray cluster has {_listed(found)}, this one "
                f"{_listed(_versions())}: install the same versions on all."
            )
        if isinstance(found, Raised):
            return found
        value, files = found.value
        if job.folder is not None:
            mirror(files, self._folder / job.folder)
        return Returned(value)

    def _send(self, attempt: Attempt) -> None:
        job, number = attempt.job, len(self._attempts)
        self._attempts.append(attempt)
        work = job, number, self._study, self._needs.threads
        folder = None if job.folder is None else self._folder / job.folder
        files = {} if folder is None or not folder.is_dir() else read_files(folder)
        reference = self._task.remote(
            _versions(),
            self._ray.cloudpickle.dumps(work),
            self._snapshot,
            self._ray.put(files),
            self._keeper,
        )
        self._running[reference] = attempt


def _put(ray: ModuleType, snapshot: Snapshot) -> Any:
    """Puts what the jobs share into Ray's object store, once for all machines.

    Raises:
        ConfigError: if it is too large for it.
    """
    file = BytesIO()
    snapshot.save(file)
    try:
        return ray.put(np.frombuffer(file.getbuffer(), dtype=np.uint8))
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
        raise ConfigError(
            f"Ray's object store has no room for what the runs share, {file.tell() / 1e6:,.0f} MB "
            "of encoder and data: start its machines with a larger --object-store-memory."
        ) from None


def _task(ray: ModuleType) -> Any:
    """The task: returns what is installed if that is not the same, else does a job.

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
