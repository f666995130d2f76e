"""A run in a tracker, and what trackers record: flat mappings of plain values."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from totune.runs.config import RunConfig
from totune.runs.records import EpochRecord, RunRecord

LONGEST = 500  # characters of a value; some trackers take no more

Value = bool | int | float | str


@dataclass(frozen=True)
class TrackedName:
    """The names of a run in a tracker.

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
        """The name that the runs of a study are grouped under."""
        return self.folder.name

    @property
    def identity(self) -> str:
        """A hash of study and run: a run that is tracked again replaces its earlier self."""
        return sha256(f"{self.folder} {self.fingerprint}".encode()).hexdigest()[:16]

    def files(self, tracker: str) -> Path:
        """The folder of a tracker's files, unless its own settings name another."""
        return self.folder / "tracking" / tracker


class TrackedRun(ABC):
    """A run in a tracker; making one begins it. Several may go on at once."""

    @abstractmethod
    def __init__(self, run: TrackedName, parameters: Mapping[str, Value]) -> None: ...

    @abstractmethod
    def log(self, values: Mapping[str, float], step: int) -> None:
        """Records the numbers of an epoch."""

    @abstractmethod
    def end(self, error: str | None) -> None:
        """Ends the run; `error` is the reason of one that failed."""


def parameters(config: RunConfig) -> dict[str, Value]:
    """The configuration, with names like `strategy.options.learning_rate`."""
    return {**dict(_flat("", config.to_json())), "fingerprint": config.fingerprint}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, bool | int | float):
        yield name, value
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield name, text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def of_epoch(epoch: EpochRecord) -> dict[str, float]:
    """`train/loss`, `dev/accuracy` and so on, and the epoch's seconds."""
    splits = {"train": epoch.train, "train_after": epoch.train_after, "dev": epoch.dev}
    return {**_named(splits), "epoch_seconds": epoch.seconds}


def of_record(record: RunRecord) -> dict[str, float]:
    """`test/accuracy`, `best_dev/accuracy`, `cost/train_seconds` and so on."""
    costs = {} if record.costs is None else asdict(record.costs)
    return _named({"test": record.test, "best_dev": record.dev, "cost": costs})


def _named(groups: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {
        f"{group}/{name}": value for group, own in groups.items() for name, value in own.items()
    }
