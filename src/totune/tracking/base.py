"""A run in a tracker."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from totune.tracking.numbers import Value


@dataclass(frozen=True)
class Named:
    """What a run is called there.

    Attributes:
        title: strategy and seed.
        fingerprint: of the run.
        folder: of the study.
    """

    title: str
    fingerprint: str
    folder: Path

    @property
    def study(self) -> str:
        """What its runs are grouped under."""
        return self.folder.name

    @property
    def identity(self) -> str:
        """Of this run of this study alone: told again, it takes the place of what was told."""
        return sha256(f"{self.folder} {self.fingerprint}".encode()).hexdigest()[:16]

    def place(self, tracker: str) -> Path:
        """Where a tracker keeps its files unless it was told otherwise."""
        return self.folder / "tracking" / tracker


class TrackedRun(ABC):
    """A run while it goes; making one begins it. Several may go on at once."""

    @abstractmethod
    def __init__(self, run: Named, parameters: Mapping[str, Value]) -> None: ...

    @abstractmethod
    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers after an epoch."""

    @abstractmethod
    def end(self, error: str | None) -> None:
        """No more will come; `error` says why a run failed."""
