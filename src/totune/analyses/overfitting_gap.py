"""How far train runs ahead of dev, and where the gap rule would stop (Wang et al. 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import fmean
from typing import Annotated, Any, ClassVar

from pydantic import Field

from totune.analyses.base import (
    ANALYSES,
    Analysis,
    AnalysisResult,
    Rows,
    finite,
    mean_of_known,
)
from totune.analyses.overfitting_gap_section import gap_section
from totune.errors import DataError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import EpochRecord, RunRecord, StudyInfo
from totune.strategies.phases import EpochScores, Gap

StudyRuns = tuple[StudyInfo, Sequence[RunRecord]]
PhaseRows = list[dict[str, Any]]  # a row per epoch of one phase of one run


@ANALYSES.register("overfitting-gap")
@dataclass(frozen=True)
class OverfittingGap(Analysis[StudyRuns]):
    """Train and dev metric after every epoch of every phase, and what the gap rule would do.

    Heavy networks over-fit frozen features, and training should stop while train and dev still
    differ little (Wang et al. 2019, Discussions). The rule is the one of stack-and-finetune's first
    phase, applied here to every phase of every strategy.

    Attributes:
        tolerance: how far train may lead dev, in the metric's own scale; errors without an upper
            bound need one of their own.
        gap_patience: number of epochs in a row above the tolerance that ends a phase.
        patience: number of epochs without a better dev score that ends a phase, too.
    """

    title: ClassVar[str] = "Over-fitting gap"
    reads_runs: ClassVar[bool] = True

    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Gap.tolerance
    gap_patience: Annotated[int, Field(ge=1)] = Gap.gap_patience
    patience: Annotated[int, Field(ge=1)] = Gap.patience

    def run(self, inputs: StudyRuns, progress: Progress) -> AnalysisResult:
        """Reads the gap from records; nothing is trained.

        Args:
            inputs: a study and its runs.
            progress: not used: this takes no time.

        Returns:
            A row per epoch. `gap` is how much better train is than dev; `dropout_off` says whether
            train was measured after the epoch, as dev, or while it trained; `rule` is why the gap
            rule would end the phase there, "" where it would not.

        Raises:
            DataError: if no usable run trained in epochs.
        """
        from totune.report.groups import by_strategy

        info, records = inputs
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
            "strategies": [
                _strategy_summary([row for phase in own for row in phase])
                for _, own in groupby(phases, lambda phase: phase[0]["strategy"])
            ],
            "phases": _phase_summaries(phases, METRICS[info.metric].sign),
        }
        return AnalysisResult([row for phase in phases for row in phase], facts)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """The gap in words, as tables, and by epoch."""
        return gap_section(self.title, result)

    def _phases(self, run: RunRecord, metric: str) -> list[PhaseRows]:
        found = groupby(run.epochs, lambda epoch: epoch.phase)
        return [
            self._phase(run, place, list(epochs), metric)
            for place, (_, epochs) in enumerate(found, start=1)
        ]

    def _phase(
        self, run: RunRecord, place: int, epochs: Sequence[EpochRecord], metric: str
    ) -> PhaseRows:
        sign = METRICS[metric].sign
        rows = []
        for number, epoch in enumerate(epochs, start=1):
            train = finite((epoch.train_after or epoch.train).get(metric))
            dev = finite(epoch.dev.get(metric))
            row = {
                "strategy": run.strategy,
                "seed": run.seed,
                "place": place,
                "phase": epoch.phase,
                "epoch": epoch.epoch,
                "epoch_in_phase": number,
                "train": train,
                "dev": dev,
                "gap": None if train is None or dev is None else sign * (train - dev),
                "dropout_off": bool(epoch.train_after),
                "kept": epoch.epoch == run.best_epoch,
                "rule": "",
            }
            rows.append(row)
        self._apply_rule(rows, sign)
        return rows

    def _apply_rule(self, rows: PhaseRows, sign: int) -> None:
        """Writes why the rule would end a phase beside the epoch after which it would."""
        rule = Gap(len(rows) + 1, self.tolerance, self.gap_patience, self.patience)
        train: list[float] = []
        dev: list[float] = []
        for row in rows:
            if row["gap"] is None:
                return
            train.append(sign * row["train"])
            dev.append(sign * row["dev"])
            row["rule"] = rule.ends(EpochScores(dev, train))
            if row["rule"]:
                return


def _strategy_summary(rows: Rows) -> dict[str, Any]:
    """Means over the runs of a strategy."""
    last_epochs = {row["seed"]: row for row in rows}
    return {
        "strategy": rows[0]["strategy"],
        "runs": len(last_epochs),
        "kept_gap": mean_of_known([row["gap"] for row in rows if row["kept"]]),
        "last_gap": mean_of_known([row["gap"] for row in last_epochs.values()]),
        "dropout_off": sum(row["dropout_off"] for row in rows) / len(rows),
    }


def _phase_summaries(phases: Sequence[PhaseRows], sign: int) -> list[dict[str, Any]]:
    """Means over runs, for each phase of each strategy."""
    runs: dict[tuple[str, int], list[PhaseRows]] = {}
    for rows in phases:
        runs.setdefault((rows[0]["strategy"], rows[0]["place"]), []).append(rows)
    return [_phase_summary(found, sign) for found in runs.values()]


def _phase_summary(runs: Sequence[PhaseRows], sign: int) -> dict[str, Any]:
    """Means over the runs of one phase; of what holds at its stop, over those that have one."""
    stops = [row for rows in runs for row in rows if row["rule"]]
    stopped = [rows for rows in runs if any(row["rule"] for row in rows)]
    best = [_best_dev(rows, sign) for rows in stopped]
    until = [
        _best_dev(rows[: stop["epoch_in_phase"]], sign)
        for rows, stop in zip(stopped, stops, strict=True)
    ]
    return {
        "strategy": runs[0][0]["strategy"],
        "phase": runs[0][0]["phase"],
        "runs": len(runs),
        "epochs": fmean(len(rows) for rows in runs),
        "longest": max(len(rows) for rows in runs),
        "stopped": len(stopped),
        "stop": mean_of_known([stop["epoch_in_phase"] for stop in stops]),
        "gap_there": mean_of_known([stop["gap"] for stop in stops]),
        "dev_there": mean_of_known([stop["dev"] for stop in stops]),
        "best_dev": mean_of_known(best),
        # How much of the best dev score comes only after the stop.
        "cost": mean_of_known([_apart(*both) for both in zip(best, until, strict=True)]),
        "why": [stop["rule"] for stop in stops],
        "dropout_off": all(row["dropout_off"] for rows in runs for row in rows),
    }


def _best_dev(rows: Sequence[Mapping[str, Any]], sign: int) -> float | None:
    known = [row["dev"] for row in rows if row["dev"] is not None]
    return max(known, key=lambda dev: sign * dev, default=None)


def _apart(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else abs(one - other)
