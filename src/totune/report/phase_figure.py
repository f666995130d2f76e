"""Training phase by phase as plain data: train and dev after every epoch, and the gap between."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from totune.report.formatting import is_bounded
from totune.runs.records import EpochRecord, RunRecord

Plan = list[tuple[str, list[EpochRecord]]]  # a run's phases: their names and epochs


@dataclass(frozen=True)
class PhaseSpan:
    """Where a phase lies on the axis of epochs: so many epochs after the first `start`."""

    name: str
    start: int
    epochs: int


@dataclass(frozen=True)
class PhaseLine:
    """One run; every sequence has a value per epoch, None where it is not known.

    Attributes:
        at: the place of each epoch on the axis, from 1: each phase begins at the same place for
            all runs.
        dev: after the epoch.
        train: after the epoch too, dropout off.
        live: on train too, but measured while training, dropout on; only where `train` is unknown.
        gap: how far `train` is better than `dev`.
        kept: the place of the epoch that was kept, or None.
        live_gap: how far `live` is, where that is asked.
        stops: the places after which a rule would end a phase.
    """

    seed: int
    at: tuple[int, ...]
    dev: tuple[float | None, ...]
    train: tuple[float | None, ...]
    live: tuple[float | None, ...]
    gap: tuple[float | None, ...]
    kept: int | None
    live_gap: tuple[float | None, ...] = ()
    stops: tuple[int, ...] = ()


@dataclass(frozen=True)
class PhaseFigure:
    """The usable runs of one strategy; bounded metrics are in points.

    Attributes:
        gap_limit: how large a gap ends a phase, or None where none does.
        gap_limits: of the axis of gaps, or None for one that fits this strategy.
    """

    metric: str
    strategy: str
    strategies: tuple[str, ...]
    spans: tuple[PhaseSpan, ...]
    lines: tuple[PhaseLine, ...]
    gap_limit: float | None
    gap_limits: tuple[float, float] | None = None

    @property
    def epochs(self) -> int:
        return self.spans[-1].start + self.spans[-1].epochs

    @property
    def has_gap(self) -> bool:
        return any(
            value is not None for line in self.lines for value in (*line.gap, *line.live_gap)
        )


def phases_of(run: RunRecord) -> Plan:
    """The epochs of each phase, in order."""
    return [(name, list(found)) for name, found in groupby(run.epochs, lambda epoch: epoch.phase)]


def scale(metric: str, values: Sequence[float]) -> tuple[float, ...]:
    """Values as axes and tables show them: points of a bounded metric."""
    return tuple(100 * value if is_bounded(metric) else value for value in values)


def shown(metric: str, values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Values as they are drawn, those of bounded metrics in points."""
    return tuple(None if value is None else scale(metric, [value])[0] for value in values)
