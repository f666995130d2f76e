"""How far train runs ahead of dev, and where the gap rule would stop (Wang et al. 2019)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import fmean
from typing import Any, ClassVar

from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.drawing.gap_section import gap_section
from totune.analyses.measuring.known import finite, mean
from totune.errors import DataError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.report.document import Section
from totune.report.groups import by_strategy
from totune.report.phase_figure import phases_of
from totune.runs.records import EpochRecord, RunRecord, StudyInfo
from totune.strategies.base import Count, Decay
from totune.strategies.phases import Gap, Scores

StudyRuns = tuple[StudyInfo, Sequence[RunRecord]]
Found = Mapping[str, Any]


@ANALYSES.register("overfitting-gap")
@dataclass(frozen=True)
class OverfittingGap(Analysis[StudyRuns]):
    """Train and dev metric after every epoch of every phase, and what the gap rule would do.

    Heavy networks over-fit frozen features, and training should stop while train and dev still
    differ little (Wang et al. 2019, Discussions). The rule is the one of stack-and-finetune's first
    phase, asked here of every phase of every strategy.

    Attributes:
        tolerance: how far train may lead dev, in the metric's own scale; errors without an upper
            bound need one of their own.
        gap_patience: so many epochs in a row above the tolerance end a phase.
        patience: so many epochs without a better dev score do, too.
    """

    title: ClassVar[str] = "Over-fitting gap"
    reads_runs: ClassVar[bool] = True

    tolerance: Decay = Gap.tolerance
    gap_patience: Count = Gap.gap_patience
    patience: Count = Gap.patience

    def run(self, material: StudyRuns, progress: Progress) -> Values:
        """Reads the gap from records; nothing is trained.

        Args:
            material: a study and its runs.
            progress: not used: this takes no time.

        Returns:
            A row per epoch. `gap` is how much better train is than dev; `dropout_off` tells whether
            train was measured after the epoch, as dev, or while it trained; `rule` is why the gap
            rule would end the phase there, "" where it would not.

        Raises:
            DataError: if no usable run trained in epochs.
        """
        info, records = material
        groups = by_strategy(info, records)
        runs = [run for group in groups for run in group.usable if run.epochs]
        if not runs:
            raise DataError(
                f"No usable run of {info.name} trained in epochs, so there is no gap to show."
            )
        phases = [phase for run in runs for phase in self._phases(run, info.metric)]
        facts = {
            "metric": info.metric,
            "order": [group.strategy for group in groups],
            **asdict(self),
            "strategies": [_strategy(list(same)) for _, same in groupby(phases, _by_strategy)],
            "phases": _summaries(phases),
        }
        return Values([asdict(row) for phase in phases for row in phase.epochs], facts)

    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        return gap_section(self.title, values)

    def _phases(self, run: RunRecord, metric: str) -> "Iterator[_Phase]":
        for place, (name, epochs) in enumerate(phases_of(run), start=1):
            known = [_Scored.of(epoch, metric) for epoch in epochs]
            at, why = self._stop(known, metric)
            rows = tuple(
                _Epoch(
                    strategy=run.strategy,
                    seed=run.seed,
                    place=place,
                    phase=name,
                    epoch=epoch.epoch,
                    epoch_in_phase=number,
                    train=scored.train,
                    dev=scored.dev,
                    gap=scored.gap(metric),
                    dropout_off=scored.dropout_off,
                    kept=epoch.epoch == run.best_epoch,
                    rule=why if number == at else "",
                )
                for number, (epoch, scored) in enumerate(zip(epochs, known, strict=True), start=1)
            )
            yield _Phase(rows, at, METRICS[metric].sign)

    def _stop(self, epochs: "Sequence[_Scored]", metric: str) -> tuple[int | None, str]:
        """The epoch, from 1, after which the rule would end a phase, and why; None if none."""
        sign = METRICS[metric].sign
        rule = Gap(len(epochs) + 1, self.tolerance, self.gap_patience, self.patience)
        train: list[float] = []
        dev: list[float] = []
        for epoch in epochs:
            if epoch.train is None or epoch.dev is None:
                return None, ""
            train.append(sign * epoch.train)
            dev.append(sign * epoch.dev)
            why = rule.ends(Scores(dev, train))
            if why:
                return len(dev), why
        return None, ""


@dataclass(frozen=True)
class _Scored:
    """One epoch by one metric; None where it is not known."""

    train: float | None
    dev: float | None
    dropout_off: bool

    @classmethod
    def of(cls, epoch: EpochRecord, metric: str) -> "_Scored":
        train = epoch.train_after or epoch.train
        return cls(
            finite(train.get(metric)), finite(epoch.dev.get(metric)), bool(epoch.train_after)
        )

    def gap(self, metric: str) -> float | None:
        """How much better train is than dev."""
        if self.train is None or self.dev is None:
            return None
        return METRICS[metric].sign * (self.train - self.dev)


@dataclass(frozen=True)
class _Epoch:
    """A row: an epoch, counted over the run and in its phase, which has its place in the plan."""

    strategy: str
    seed: int
    place: int
    phase: str
    epoch: int
    epoch_in_phase: int
    train: float | None
    dev: float | None
    gap: float | None
    dropout_off: bool
    kept: bool
    rule: str


@dataclass(frozen=True)
class _Phase:
    """One phase of one run.

    Attributes:
        stop: the epoch, from 1, after which the rule would end it.
        sign: of the metric.
    """

    epochs: tuple[_Epoch, ...]
    stop: int | None
    sign: int

    def best(self, until: int | None = None) -> float | None:
        """The best dev score of the first epochs, or of all."""
        known = [epoch.dev for epoch in self.epochs[:until] if epoch.dev is not None]
        return max(known, key=lambda dev: self.sign * dev, default=None)

    @property
    def cost(self) -> float | None:
        """How much of the best dev score comes only after the stop."""
        if self.stop is None:
            return None
        best, until = self.best(), self.best(self.stop)
        return None if best is None or until is None else abs(best - until)


def _by_strategy(phase: _Phase) -> str:
    return phase.epochs[0].strategy


def _strategy(phases: Sequence[_Phase]) -> dict[str, Any]:
    """Means over the runs of a strategy."""
    epochs = [epoch for phase in phases for epoch in phase.epochs]
    lasts = {epoch.seed: epoch for epoch in epochs}
    return {
        "strategy": epochs[0].strategy,
        "runs": len(lasts),
        "kept_gap": mean([epoch.gap for epoch in epochs if epoch.kept]),
        "last_gap": mean([epoch.gap for epoch in lasts.values()]),
        "dropout_off": sum(epoch.dropout_off for epoch in epochs) / len(epochs),
    }


def _summaries(phases: Sequence[_Phase]) -> list[dict[str, Any]]:
    """Means over runs, for each phase of each strategy."""
    same: dict[tuple[str, int], list[_Phase]] = {}
    for phase in phases:
        first = phase.epochs[0]
        same.setdefault((first.strategy, first.place), []).append(phase)
    return [_summary(found) for found in same.values()]


def _summary(phases: Sequence[_Phase]) -> dict[str, Any]:
    first = phases[0].epochs[0]
    stopped = [phase for phase in phases if phase.stop is not None]
    return {
        "strategy": first.strategy,
        "phase": first.phase,
        "runs": len(phases),
        "epochs": fmean(len(phase.epochs) for phase in phases),
        "longest": max(len(phase.epochs) for phase in phases),
        "stopped": len(stopped),
        "stop": mean([phase.stop for phase in stopped]),
        "gap_there": mean([phase.epochs[phase.stop - 1].gap for phase in stopped if phase.stop]),
        "dev_there": mean([phase.epochs[phase.stop - 1].dev for phase in stopped if phase.stop]),
        "best_dev": mean([phase.best() for phase in stopped]),
        "cost": mean([phase.cost for phase in stopped]),
        "why": [phase.epochs[phase.stop - 1].rule for phase in stopped if phase.stop],
        "dropout_off": all(epoch.dropout_off for phase in phases for epoch in phase.epochs),
    }
