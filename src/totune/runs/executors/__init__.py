"""Where the runs of a study take place: this process, several of this machine, or a Ray cluster."""

from typing import TYPE_CHECKING

from totune.runs.executors.base import Executor, Job, SerialExecutor

if TYPE_CHECKING:
    from totune.runs.settings import Settings

__all__ = ["Executor", "Job", "SerialExecutor", "create_executor"]


def create_executor(settings: "Settings") -> Executor:
    """The executor that settings ask for.

    Raises:
        ConfigError: if a package that it needs is not installed.
    """
    if settings.executor == "ray":
        from totune.runs.executors.ray import RayExecutor
        from totune.runs.executors.ray_session import import_ray

        import_ray()
        return RayExecutor(
            settings.address,
            settings.cpus_per_run,
            settings.gpus_per_run,
            settings.jobs,
            settings.cache_dir and settings.cache_dir.resolve(),
            settings.cache_budget,
        )
    if settings.jobs == 1:
        return SerialExecutor()
    from totune.runs.executors.processes import ProcessExecutor

    return ProcessExecutor(settings.jobs)
