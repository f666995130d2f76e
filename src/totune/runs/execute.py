"""Runs what is missing of a study, within a budget of time."""

import math
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from totune.baselines.base import Baseline
from totune.errors import ConfigError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job, SerialExecutor
from totune.runs.records import RunRecord
from totune.runs.run import build_model, encoding_options_of, run, save_failure
from totune.runs.store import Store
from totune.strategies.base import Strategy

Runs = Sequence[tuple[RunConfig, Strategy | Baseline]]


@dataclass(frozen=True)
class RunJob(Job):
    """A run of a study; its result is the record and the seconds that it took."""

    config: RunConfig
    member: Strategy | Baseline

    @property
    def folder(self) -> str:
        return f"runs/{self.config.fingerprint}"

    def run(self, context: Context, store: Store) -> tuple[RunRecord, float]:
        began = time.monotonic()
        record = run(self.config, self.member, context, store)
        return record, time.monotonic() - began

    def fail(self, error: str, context: Context, store: Store) -> tuple[RunRecord, float]:
        return save_failure(self.config, error, context, store), 0.0


def execute(
    runs: Runs,
    context: Context,
    store: Store,
    budget: float | None = None,
    on_record: Callable[[list[RunRecord]], None] = lambda _: None,
    keep_all: bool = False,
    executor: Executor | None = None,
    spent: float = 0.0,
) -> list[RunRecord]:
    """Runs every configuration that has no finished record yet.

    Args:
        runs: configurations in the order they are to run.
        context: what they share.
        store: where records are kept.
        budget: seconds after which no further run is begun, and within which a run must be
            expected to end (by the longest run of its strategy so far); None for no limit.
        on_record: told the records so far after each run.
        keep_all: keep the trained weights of every run, not of each strategy's best alone; a
            finished run whose weights are gone runs again.
        executor: who runs them; this process if None.
        spent: seconds of the budget that are gone already.

    Returns:
        The records of all runs that are finished or have failed, in the order of `runs`.
    """
    found = _found(runs, store, keep_all)
    context.devices.wait()  # all have read before anyone writes
    jobs = [
        RunJob(f"run {number}/{len(runs)}: {config.label}, seed {config.seed}", config, member)
        for number, (config, member) in enumerate(runs, start=1)
        if config.fingerprint not in found
    ]
    skipped: list[str] = []
    longest: dict[str, float] = {}
    for record in found.values():
        _note_longest(longest, record, record.costs.train_seconds if record.costs else 0.0)
    began = time.monotonic()

    def may_begin(job: Job) -> bool:
        assert isinstance(job, RunJob)
        left = math.inf if budget is None else budget - spent - (time.monotonic() - began)
        late = context.devices.agree(left < longest.get(job.config.label, 0.0))
        if late:
            skipped.append(f"{job.config.label} seed {job.config.seed}")
        return not late

    def tell() -> list[RunRecord]:
        records = [found[c.fingerprint] for c, _ in runs if c.fingerprint in found]
        if context.devices.is_main and not keep_all:
            keep_best_weights(store, records, context.settings.metric)
        on_record(records)
        return records

    if found:
        tell()
    for _, (record, seconds) in (executor or SerialExecutor()).perform(
        jobs, context, store, may_begin
    ):
        found[record.fingerprint] = record
        _note_longest(longest, record, seconds)
        _tell(record, context.progress)
        tell()
    if skipped:
        context.progress.warn(
            f"The budget of {budget:.0f} s is used up; not run: {', '.join(skipped)}. The same "
            "command with a larger budget runs only these."
        )
    return [found[c.fingerprint] for c, _ in runs if c.fingerprint in found]


def _note_longest(longest: dict[str, float], record: RunRecord, seconds: float) -> None:
    longest[record.strategy] = max(longest.get(record.strategy, 0.0), seconds)


def _found(runs: Runs, store: Store, keep_all: bool) -> dict[str, RunRecord]:
    """The finished runs, by fingerprint; with `keep_all` those alone that have their weights."""
    records = [store.record(config.fingerprint) for config, _ in runs]
    return {
        record.fingerprint: record
        for record in records
        if record is not None
        and record.status == "finished"
        and not (keep_all and not store.weights(record.fingerprint).exists())
    }


def tokenize_splits(runs: Runs, context: Context) -> None:
    """Tokenises every split as each strategy needs it, so that what is cut is told before a run."""
    framings = {
        encoding_options_of(config, member, context)
        for config, member in runs
        if isinstance(member, Strategy)
    }
    for encoding_options in sorted(framings, key=repr):
        for name in context.dataset.splits():
            context.split(name, encoding_options)


def check_plans(runs: Runs, context: Context) -> None:
    """Makes every strategy's plan, so that one that does not fit the encoder is told before a run.

    Raises:
        ConfigError: with every fault of every strategy.
    """
    faults = [fault for found in plan_faults(runs, context).values() for fault in found]
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))


def plan_faults(runs: Runs, context: Context) -> dict[str, list[str]]:
    """Why members do not fit encoder, task and data, by label; those that fit are not in it."""
    faults: dict[str, list[str]] = {}
    first = {config.label: (config, member) for config, member in reversed(runs)}
    for config, member in reversed(first.values()):
        try:
            if isinstance(member, Strategy):
                build_model(config, member, context)
            elif context.task.name not in member.tasks:
                raise ConfigError(
                    f"baseline {member.name!r} cannot be used for {context.task.name}; it is for "
                    f"{' and '.join(member.tasks)}."
                )
        except ConfigError as error:
            faults[config.label] = list(error.faults)
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
    kept = [(config, member) for config, member in runs if config.label not in faults]
    left = any(isinstance(member, Strategy) for _, member in kept)
    if not left or any(label in faults for label in named):
        check_plans(runs, context)
    told = [f"{label} is left out: {' '.join(found)}" for label, found in faults.items()]
    for sentence in told:
        context.progress.warn(sentence)
    return kept, told


def best_run(records: Sequence[RunRecord], label: str, metric: str) -> RunRecord | None:
    """The finished run of a strategy with the best dev score, of equals the lowest seed.

    A run whose predictions are useless comes after all others.
    """
    sign = METRICS[metric].sign
    runs = [r for r in records if r.strategy == label and r.status == "finished"]
    return max(
        runs, key=lambda r: (r.degenerate is None, sign * r.dev[metric], -r.seed), default=None
    )


def keep_best_weights(store: Store, records: Sequence[RunRecord], metric: str) -> None:
    """Drops the weights of every run but the best by dev score of its strategy."""
    for label in {record.strategy for record in records}:
        best = best_run(records, label, metric)
        for record in records:
            if record.strategy == label and record is not best:
                shutil.rmtree(store.weights(record.fingerprint), ignore_errors=True)


def _tell(record: RunRecord, progress: Progress) -> None:
    name = f"{record.strategy} seed {record.seed}"
    if record.status == "failed":
        progress.warn(f"{name} failed: {record.error}")
    elif record.degenerate:
        progress.warn(f"{name} {record.degenerate}; its score counts like any other.")
