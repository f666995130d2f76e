"""Who is to do a study's work, by its settings."""

from totune.runs.executors.base import Executor, Here
from totune.runs.executors.processes import Processes
from totune.runs.executors.ray import RayCluster
from totune.runs.executors.ray_session import import_ray
from totune.runs.executors.shipping import CachePlace
from totune.runs.settings import Settings


def executor_of(settings: Settings) -> Executor:
    """The executor that settings ask for.

    Raises:
        ConfigError: if a package that it needs is not installed.
    """
    if settings.executor == "ray":
        import_ray()
        root = settings.cache_dir and settings.cache_dir.resolve()
        return RayCluster(
            settings.address,
            settings.cpus_per_run,
            settings.gpus_per_run,
            settings.jobs,
            CachePlace(root, settings.cache_budget),
        )
    return Here() if settings.jobs == 1 else Processes(settings.jobs)
