"""Studies in few words: which rows each run gets wrong, and what it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tests.unit.runs.samples import COSTS, record_of

from totune.racing.interim import Design, InterimAnalysis, interim_analysis
from totune.racing.records import Elimination, Reason
from totune.runs.records import RunRecord

ROWS = 2000
DESIGN = Design("accuracy", 0.005, seeds=5, analyses=4)


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


def analysed(
    made: Made,
    design: Design = DESIGN,
    earlier: Mapping[str, Reason] | None = None,
    part: bool = False,
) -> InterimAnalysis:
    racing = [name for name in made.names if name not in (earlier or {})]
    return interim_analysis(racing, earlier or {}, made.records, made.arrays, design, part)


def reasons(found: InterimAnalysis) -> dict[str, str]:
    return {gone.strategy: gone.reason for gone in found.eliminated}


def gone(name: str, found: InterimAnalysis) -> Elimination:
    return next(each for each in found.eliminated if each.strategy == name)
