"""Studies in few words: which rows each run gets wrong, and what it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tests.unit.study.samples import COSTS, record_of

from totune.racing.looks import Look, Terms, look
from totune.racing.records import Departure, Reason
from totune.runs.records import RunRecord

ROWS = 2000
TERMS = Terms("accuracy", 0.005, seeds=5, looks=4)


@dataclass
class Made:
    """Records, and their arrays by fingerprint."""

    records: list[RunRecord] = field(default_factory=list)
    arrays: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def __add__(self, other: "Made") -> "Made":
        return Made(self.records + other.records, self.arrays | other.arrays)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(record.strategy for record in self.records))


def runs(label: str, wrong: Sequence[int], seconds: float = 1.0, rows: int = ROWS) -> Made:
    """A run per entry of `wrong`, which says on how many rows, from the first, it errs."""
    made, targets = Made(), np.arange(rows) % 2
    for seed, count in enumerate(wrong):
        costs = replace(COSTS, train_seconds=seconds, feature_seconds=0.0)
        record = record_of(label, seed, costs=costs, epochs=[])
        predictions = np.where(np.arange(rows) < count, 1 - targets, targets)
        made.records.append(record)
        made.arrays[record.fingerprint] = {"targets": targets, "predictions": predictions}
    return made


def lost(label: str, seeds: int, **facts: Any) -> Made:
    """Runs that do not count."""
    return Made([record_of(label, seed, **facts) for seed in range(seeds)])


def looked(
    made: Made, terms: Terms = TERMS, left: Mapping[str, Reason] | None = None, part: bool = False
) -> Look:
    racing = [name for name in made.names if name not in (left or {})]
    return look(racing, left or {}, made.records, made.arrays, terms, part)


def reasons(found: Look) -> dict[str, str]:
    return {gone.strategy: gone.reason for gone in found.left}


def gone(name: str, found: Look) -> Departure:
    return next(each for each in found.left if each.strategy == name)
