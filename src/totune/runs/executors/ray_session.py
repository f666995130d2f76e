"""The way to a Ray cluster: the package, the connection, what its machines have."""

import importlib
import logging
import math
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from totune.errors import ConfigError
from totune.machine import usable_cores
from totune.runs.executors.pool import environment
from totune.text import first_line


def import_ray() -> ModuleType:
    """The package.

    Raises:
        ConfigError: if it is not installed.
    """
    try:
        # Ray prints pages on standard output when a machine dies; what matters of it is told. It
        # reads this variable as it is imported.
        with environment({"RAY_DEDUP_LOGS_SKIP_REGEX": "."}):
            return importlib.import_module("ray")
    except ImportError:
        raise ConfigError(
            "`executor='ray'` needs Ray, which is not installed: pip install 'totune[ray]'."
        ) from None


@dataclass(frozen=True)
class Needs:
    """What a run reserves of a machine; its threads are the whole processors of it."""

    cpus: float
    gpus: float

    @property
    def threads(self) -> int:
        return max(1, int(self.cpus))

    def fit(self, resources: dict[str, float]) -> int:
        """How many runs a machine with these resources can have at once."""
        counts = [resources.get("CPU", 0.0) / self.cpus]
        if self.gpus:
            counts.append(resources.get("GPU", 0.0) / self.gpus)
        return math.floor(min(counts) + 1e-9)

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs" + (f" and {self.gpus:g} GPUs" if self.gpus else "")


@contextmanager
def connected(address: str | None, cpus: float) -> Iterator[ModuleType]:
    """Ray, connected while the block runs; a connection that was there before stays.

    Args:
        address: of a cluster; None for $RAY_ADDRESS, or else one that is started on this machine.
        cpus: that one started here has at least.

    Raises:
        ConfigError: if it cannot be reached.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_answers(place)
    options: dict[str, Any] = {"address": place}
    if place == "local":
        options |= {"num_cpus": max(usable_cores(), math.ceil(cpus)), "include_dashboard": False}
    try:
        with environment({"RAY_USAGE_STATS_ENABLED": "0"}):
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises many kinds, plain ones among them
        raise _unusable(place, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(place: str) -> None:
    """Knocks at HOST:PORT, where Ray itself would wait for minutes."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise _unusable(place, error) from None


def _unusable(place: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"The Ray cluster at {place!r} cannot be used: {first_line(error)}. Start one with "
        "`ray start --head`, and name it with `address` (HOST:PORT), from a machine that is part "
        "of it."
    )


def capacity(ray: ModuleType, needs: Needs) -> int:
    """How many runs the machines that are up can have at once."""
    return sum(needs.fit(node["Resources"]) for node in _alive(ray))


def check_capacity(ray: ModuleType, needs: Needs) -> None:
    """Refuses what no machine of the cluster can hold, since it would wait for ever.

    Raises:
        ConfigError: with what they have.
    """
    if capacity(ray, needs):
        return
    have = sorted(
        {
            f"{node['Resources'].get('CPU', 0):g} CPUs and {node['Resources'].get('GPU', 0):g} GPUs"
            for node in _alive(ray)
        }
    )
    raise ConfigError(
        f"A run is to have {needs}, and no machine of the Ray cluster has as many (they have "
        f"{'; '.join(have)}). Use `cpus_per_run` and `gpus_per_run`."
    )


def has_gpus(ray: ModuleType) -> bool:
    """Whether any machine that is up has a GPU."""
    return any(node["Resources"].get("GPU", 0.0) >= 1 for node in _alive(ray))


def _alive(ray: ModuleType) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]
