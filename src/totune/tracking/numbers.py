"""What trackers are told of a run: flat mappings of plain values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from totune.runs.config import RunConfig
from totune.runs.records import EpochRecord, RunRecord

LONGEST = 500  # characters of a value; some trackers take no more

Value = bool | int | float | str


def parameters(config: RunConfig) -> dict[str, Value]:
    """The configuration, with names like `strategy.options.learning_rate`."""
    found = dict(_flat("", config.to_json()))
    return {**found, "fingerprint": config.fingerprint}


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
