"""Runs what is missing of a study, within a budget of time."""

import math
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from totune.errors import ConfigError
from totune.progress import Progress
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job, SerialExecutor
from totune.runs.records import RunRecord, best_run
from totune.runs.run import Run, Runs
from totune.runs.store import Store
from totune.runs.study_time import StudyTime
from totune.strategies.base import Strategy

MOST_NAMES = 24  # of runs, in one message
Report = Callable[[list[RunRecord]], None]


@dataclass(frozen=True)
class RunJob(Job):
    """A run of a study; its result is the record and the seconds that it took."""

    task: Run

    @property
    def folder(self) -> str:
        return f"runs/{self.task.fingerprint}"

    def run(self, context: Context, store: Store) -> tuple[RunRecord, float]:
        began = time.monotonic()
        record = self.task.execute(context, store)
        return record, time.monotonic() - began

    def fail(self, error: str, context: Context, store: Store) -> tuple[RunRecord, float]:
        return self.task.fail(error, context, store), 0.0


@dataclass(frozen=True)
class Runner:
    """Executes runs that share a context, and keeps their records in a store.

    Attributes:
        context: what the runs share.
        store: where records and weights are kept.
        executor: where runs take place.
        keep_all: whether the trained weights of every run are kept, not of each strategy's best
            alone; a finished run whose weights are gone then runs again.
        time: what the runs are expected to take; None where nobody knows.
    """

    context: Context
    store: Store
    executor: Executor = field(default_factory=SerialExecutor)
    keep_all: bool = False
    time: StudyTime | None = None

    def execute(
        self,
        runs: Runs,
        budget: float | None = None,
        on_record: Report = lambda _: None,
        spent: float = 0.0,
    ) -> list[RunRecord]:
        """Runs everything that has no finished record yet.

        Args:
            runs: in the order in which they are to run.
            budget: seconds after which no further run is begun, and within which a run must be
                expected to end (by the longest run of its strategy so far, or before there is one
                by half of what `time` expects); None for no limit.
            on_record: called with the records so far after each run.
            spent: seconds of the budget that are gone already.

        Returns:
            The records of all runs that are finished or have failed, in the order of `runs`.
        """
        found = self._finished(
            runs, lambda fault: self.context.progress.warn(f"{fault} The run is done again.")
        )
        if self.context.devices.is_main:
            self.store.sweep(found)
        expected = self.time or StudyTime({})
        self.context.devices.wait()  # all have read before anyone writes
        jobs = [
            RunJob(f"run {number}/{len(runs)}: {run.label}, {run.config.place}", run)
            for number, run in enumerate(runs, start=1)
            if run.fingerprint not in found
        ]
        clock = _Clock(budget, spent, expected)
        for record in found.values():
            clock.note(record, record.costs.train_seconds if record.costs else 0.0)

        def records() -> list[RunRecord]:
            return [found[run.fingerprint] for run in runs if run.fingerprint in found]

        def remark() -> str:
            left = [run for run in runs if run.fingerprint not in found]
            return expected.left(left) if self.time else ""

        def may_begin(job: Job) -> bool:
            assert isinstance(job, RunJob)
            return not self.context.devices.agree(clock.is_late(job.task))

        if found:
            self._after_record(records(), on_record)
        performed = self.executor.perform(jobs, self.context, self.store, may_begin, remark)
        for _, (record, seconds) in performed:
            found[record.fingerprint] = record
            clock.note(record, seconds)
            _tell(record, self.context.progress)
            self._after_record(records(), on_record)
        skipped = [run for run in runs if run.fingerprint not in found]
        if skipped and budget is not None:
            names = [f"{run.label} {run.config.place}" for run in skipped]
            shown = ", ".join(names[:MOST_NAMES])
            if len(names) > MOST_NAMES:
                shown += f" and {len(names) - MOST_NAMES} more"
            self.context.progress.warn(
                f"The budget of {budget:.0f} s is used up; not run: {shown}. The same command with "
                "a larger budget runs only these."
            )
        return records()

    def missing(self, runs: Runs) -> Runs:
        """The runs that have no finished record yet."""
        found = self._finished(runs, lambda _: None)  # `execute` warns
        return [run for run in runs if run.fingerprint not in found]

    def drop_weights(self, records: Sequence[RunRecord]) -> None:
        """Removes the trained weights of these runs."""
        if self.context.devices.is_main:
            for record in records:
                shutil.rmtree(self.store.weights(record.fingerprint), ignore_errors=True)

    def _finished(self, runs: Runs, warn: Callable[[str], None]) -> dict[str, RunRecord]:
        """The finished runs by fingerprint; with `keep_all` only those that have their weights."""
        records = (self.store.record(run.fingerprint, warn) for run in runs)
        return {
            record.fingerprint: record
            for record in records
            if record is not None
            and record.status == "finished"
            and not (self.keep_all and not self.store.has_weights(record, warn))
        }

    def _after_record(self, records: list[RunRecord], on_record: Report) -> None:
        if not self.keep_all:
            self.drop_weights(not_best(records, self.context.settings.metric))
        on_record(records)


class _Clock:
    """Time left of a budget, and how long the runs of each strategy took.

    Args:
        budget: seconds; None for no limit.
        spent: seconds of it that are gone already.
        expected: what runs take of whose strategy none has run.
    """

    def __init__(self, budget: float | None, spent: float, expected: StudyTime) -> None:
        self._end = math.inf if budget is None else time.monotonic() + budget - spent
        self._longest: dict[str, float] = {}
        self._expected = expected

    def note(self, record: RunRecord, seconds: float) -> None:
        """A run has taken this long."""
        self._longest[record.strategy] = max(self._longest.get(record.strategy, 0.0), seconds)
        self._expected.note(record, seconds)

    def is_late(self, run: Run) -> bool:
        """Whether a run cannot be expected to end within the budget."""
        seconds = self._longest.get(run.label, self._expected.surely(run.label))
        return self._end - time.monotonic() < seconds


def not_best(records: Sequence[RunRecord], metric: str) -> list[RunRecord]:
    """Every run but the best of its strategy by dev score."""
    best = [best_run(records, label, metric) for label in {r.strategy for r in records}]
    return [record for record in records if not any(record is each for each in best)]


def tokenize_splits(runs: Runs, context: Context) -> None:
    """Tokenises every split as each strategy needs it, so that what is cut is said before a run."""
    options = {
        run.spec(context).encoding_options for run in runs if isinstance(run.method, Strategy)
    }
    for each in sorted(options, key=repr):
        for name, rows in context.dataset.splits().items():
            if len(rows):
                context.split(name, each)


def check_plans(runs: Runs, context: Context) -> None:
    """Makes every strategy's plan, so that one that does not fit the encoder is found before a run.

    Raises:
        ConfigError: with every fault of every strategy, and the labels it is of if it is not of
            all.
    """
    found = plan_faults(runs, context)
    if not found:
        return
    labels = dict.fromkeys(run.label for run in runs)
    faults = []
    for fault in dict.fromkeys(fault for of_label in found.values() for fault in of_label):
        own = [label for label in labels if fault in found.get(label, ())]
        faults.append(fault if len(own) == len(labels) else f"{', '.join(own)}: {fault}")
    raise ConfigError(faults)


def plan_faults(runs: Runs, context: Context) -> dict[str, list[str]]:
    """Why methods do not fit encoder, task and data, by label; those that fit are not in it."""
    faults: dict[str, list[str]] = {}
    first = {run.label: run for run in reversed(runs)}
    for run in reversed(first.values()):
        try:
            if isinstance(run.method, Strategy):
                run.spec(context).check()
            elif context.task.name not in run.method.tasks:
                raise ConfigError(
                    f"baseline {run.method.name!r} cannot be used for {context.task.name}; it is "
                    f"for {' and '.join(run.method.tasks)}."
                )
            elif run.method.reads_text and context.task.gradient_only:
                raise ConfigError(
                    f"baseline {run.method.name!r} is logistic regression, which has no "
                    f"{' and no '.join(context.task.gradient_only)} (an option of the task). Leave "
                    "the baseline out, or the option; class_weight=balanced holds for all."
                )
        except ConfigError as error:
            faults[run.label] = list(error.faults)
    return faults


def leave_out_unfit(runs: Runs, context: Context, named: Collection[str]) -> tuple[Runs, list[str]]:
    """The runs whose strategies fit, and a sentence on each that does not.

    Args:
        runs: of strategies that nobody asked for.
        context: what they share.
        named: labels of which options were set, so that leaving them out would hide a mistake.

    Raises:
        ConfigError: with every fault, if no strategy that trains on the encoder fits, or one of
            `named` does not.
    """
    faults = plan_faults(runs, context)
    kept = [run for run in runs if run.label not in faults]
    left = any(isinstance(run.method, Strategy) for run in kept)
    if not left or any(label in faults for label in named):
        check_plans(runs, context)
    notes = [f"{label} is left out: {' '.join(found)}" for label, found in faults.items()]
    for note in notes:
        context.progress.warn(note)
    return kept, notes


def _tell(record: RunRecord, progress: Progress) -> None:
    name = f"{record.strategy} {record.place}"
    if record.status == "failed":
        progress.warn(f"{name} failed: {record.error}")
    elif record.degenerate:
        progress.warn(f"{name} {record.degenerate}; its score counts like any other.")
