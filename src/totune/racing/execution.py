"""A race on real runs: the missing runs of each round, done by any executor."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from totune.data.splits import shrink
from totune.metrics import get_metric
from totune.racing.records import Race, Round
from totune.racing.rounds import RoundRuns, make_design, plan_rounds, run_rounds
from totune.registry import options_of
from totune.runs.context import Context
from totune.runs.records import RunRecord
from totune.runs.repetitions import pool_folds
from totune.runs.run import Run, Runs
from totune.runs.runner import Runner
from totune.runs.store import Store
from totune.strategies.base import Strategy

PART = "race"  # inside a study's folder: runs on a part of the training rows


def race(
    runs: Runs,
    runner: Runner,
    tolerance: float,
    fraction: float | None = None,
    budget: float | None = None,
    on_record: Callable[[list[RunRecord]], None] = lambda _: None,
) -> tuple[list[RunRecord], Race]:
    """Runs a study in rounds; finished runs are reused, so an interrupted race continues.

    Args:
        runs: the runs of the full study.
        runner: executes them; `race.json` is written to its store after every round.
        tolerance: how much worse than the best is still good enough.
        fraction: share of the training rows of a first round with two seeds; None for no such.
        budget: seconds for all rounds together, as for `Runner.execute`; None for no limit.
        on_record: callback that receives all records on all training rows after each run.

    Returns:
        The records on all training rows, in the order of `runs`, and the race.
    """
    context, store = runner.context, runner.store
    strategies = list(dict.fromkeys(run.label for run in runs))
    seeds = list(dict.fromkeys(run.seed for run in runs))
    metric = get_metric(context.settings.metric)
    whole = _Share(runs, runner, on_record)
    shares = {1.0: whole}
    if fraction is not None:
        shares[fraction] = _part(whole, fraction)
    began = time.monotonic()

    def perform(planned: Round, racing: Sequence[str]) -> RoundRuns:
        names = f"{len(racing)} strategies" if len(racing) > 1 else racing[0]
        rows = f"{planned.fraction:.3g} of the training rows, " if planned.fraction < 1 else ""
        if context.folds is not None:
            rows = f"all {context.folds.count} folds of "
        context.progress.say(f"round: {rows}seed {', '.join(map(str, planned.seeds))}, {names}")
        return shares[planned.fraction].run(planned, racing, budget, time.monotonic() - began)

    def report(so_far: Race) -> None:
        if context.devices.is_main:
            so_far.save(store.folder)
        for elimination in so_far.rounds[-1].eliminated:
            context.progress.say(elimination.describe(metric, tolerance))

    design = make_design(metric.name, tolerance, seeds, fraction)
    made = run_rounds(strategies, plan_rounds(seeds, fraction), design, perform, report)
    return whole.records(), made


@dataclass
class _Share:
    """The runs on one share of the training rows.

    Attributes:
        requested: fingerprints of the runs of all rounds so far.
        failed: fingerprints of the runs that failed.
    """

    runs: Runs
    runner: Runner
    on_record: Callable[[list[RunRecord]], None] = lambda _: None
    drop_weights: bool = False
    requested: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def run(
        self, planned: Round, racing: Sequence[str], budget: float | None, spent: float
    ) -> RoundRuns:
        """Does the missing runs of a round; what failed in an earlier one is not tried again."""
        self.requested |= {
            run.fingerprint
            for run in self.runs
            if run.seed in planned.seeds and run.label in racing
        }
        wanted = [run for run in self.runs if run.fingerprint in self.requested - self.failed]
        self.runner.execute(wanted, budget, self.on_record, spent)
        self.runner.context.devices.wait()  # all read what the main process wrote
        records = self.records()
        self.failed = {record.fingerprint for record in records if record.status == "failed"}
        if self.drop_weights:
            self.runner.drop_weights(records)
        store = self.runner.store
        arrays = {record.fingerprint: store.predictions(record) for record in records}
        context, complete = self.runner.context, len(records) == len(self.requested)
        if context.folds is None:
            return RoundRuns(records, arrays, complete)
        pooled = pool_folds(records, arrays, context.folds.count, context.task)
        return RoundRuns(*pooled, complete)

    def records(self) -> list[RunRecord]:
        """The records of the requested runs, in the order of the runs.

        They are read from the folder: each of several processes has measured seconds of its own,
        and all must come to the same decisions.
        """
        found = [
            self.runner.store.record(run.fingerprint)
            for run in self.runs
            if run.fingerprint in self.requested
        ]
        return [record for record in found if record is not None]


def _part(whole: _Share, fraction: float) -> _Share:
    """The same runs on a part of the training rows, drawn once; their weights are not kept."""
    context = whole.runner.context
    data = context.dataset
    rows = shrink(data.splits(), data.columns.task, fraction, context.split_seed)["train"]
    small = context.with_splits({"train": rows})
    runs = [_on_part(run, small) for run in whole.runs]
    store = Store(whole.runner.store.folder / PART / f"{fraction:g}")
    return _Share(runs, Runner(small, store, whole.runner.executor), drop_weights=True)


def _on_part(run: Run, small: Context) -> Run:
    """A run on fewer rows: options that a rule chose are chosen again, for these rows."""
    config, strategy = replace(run.config, data=small.dataset.digest()), run.method
    if not isinstance(strategy, Strategy):
        return Run(config, strategy)
    decided = strategy.data_defaults(small.facts)
    changed = {name: value for name, value in decided.items() if name in config.by_rule}
    strategy = replace(strategy, **changed)
    named = {**config.strategy, "options": options_of(strategy)}
    settings = {**config.settings, **small.settings.to_json()}
    return Run(replace(config, strategy=named, settings=settings), strategy)
