"""A race on real runs: the missing runs of each round, done by any executor."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from totune.baselines.base import Baseline
from totune.data.splits import Splits, shrink
from totune.metrics import get_metric
from totune.racing.records import Race, Round
from totune.racing.rounds import RoundRuns, make_design, plan_rounds, run_rounds
from totune.registry import options_of
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.execute import Runs, execute
from totune.runs.executors.base import Executor
from totune.runs.records import RunRecord
from totune.runs.store import Store
from totune.strategies.base import Strategy

PART = "race"  # inside a study's folder: runs on a part of the training rows


def race(
    runs: Runs,
    context: Context,
    store: Store,
    tolerance: float,
    fraction: float | None = None,
    budget: float | None = None,
    on_record: Callable[[list[RunRecord]], None] = lambda _: None,
    keep_all: bool = False,
    executor: Executor | None = None,
) -> tuple[list[RunRecord], Race]:
    """Runs a study in rounds; finished runs are reused, so an interrupted race continues.

    Args:
        runs: the runs of the full study.
        context: what they share.
        store: the store of their records; `race.json` is written there after every round.
        tolerance: how much worse than the best is still good enough.
        fraction: share of the training rows of a first round with two seeds; None for no such.
        budget: seconds for all rounds together, as for `execute`; None for no limit.
        on_record: callback that receives all records on all training rows after each run.
        keep_all: whether to keep the weights of every run.
        executor: executor of the runs; this process if None.

    Returns:
        The records on all training rows, in the order of `runs`, and the race.
    """
    strategies = list(dict.fromkeys(config.label for config, _ in runs))
    seeds = list(dict.fromkeys(config.seed for config, _ in runs))
    metric = get_metric(context.settings.metric)
    whole = _Share(runs, context, store, keep_all, executor, on_record)
    shares = {1.0: whole}
    if fraction is not None:
        shares[fraction] = _part(whole, fraction)
    began = time.monotonic()

    def perform(planned: Round, racing: Sequence[str]) -> RoundRuns:
        names = f"{len(racing)} strategies" if len(racing) > 1 else racing[0]
        rows = f"{planned.fraction:.3g} of the training rows, " if planned.fraction < 1 else ""
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
    context: Context
    store: Store
    keep_all: bool
    executor: Executor | None
    on_record: Callable[[list[RunRecord]], None] = lambda _: None
    drop_weights: bool = False
    requested: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def run(
        self, planned: Round, racing: Sequence[str], budget: float | None, spent: float
    ) -> RoundRuns:
        """Does the missing runs of a round; what failed in an earlier one is not tried again."""
        self.requested |= {
            config.fingerprint
            for config, _ in self.runs
            if config.seed in planned.seeds and config.label in racing
        }
        wanted = [run for run in self.runs if run[0].fingerprint in self.requested - self.failed]
        show, keep_all = self.on_record, self.keep_all
        execute(wanted, self.context, self.store, budget, show, keep_all, self.executor, spent)
        self.context.devices.wait()  # all read what the main process wrote
        records = self.records()
        self.failed = {record.fingerprint for record in records if record.status == "failed"}
        if self.drop_weights and self.context.devices.is_main:
            for record in records:
                shutil.rmtree(self.store.weights(record.fingerprint), ignore_errors=True)
        arrays = {record.fingerprint: self.store.predictions(record) for record in records}
        return RoundRuns(records, arrays, complete=len(records) == len(self.requested))

    def records(self) -> list[RunRecord]:
        """The records of the requested runs, in the order of the runs.

        They are read from the folder: each of several processes has measured seconds of its own,
        and all must come to the same decisions.
        """
        found = [
            self.store.record(config.fingerprint)
            for config, _ in self.runs
            if config.fingerprint in self.requested
        ]
        return [record for record in found if record is not None]


def _part(whole: _Share, fraction: float) -> _Share:
    """The same runs on a part of the training rows, drawn once; their weights are not kept."""
    context, data = whole.context, whole.context.dataset
    splits = Splits(data.splits(), ())
    rows = shrink(splits, data.columns.task, fraction, context.split_seed).parts["train"]
    small = context.with_splits({"train": rows})
    runs = [_on_part(config, member, small) for config, member in whole.runs]
    store = Store(whole.store.folder / PART / f"{fraction:g}")
    return _Share(runs, small, store, False, whole.executor, drop_weights=True)


def _on_part(
    config: RunConfig, member: Strategy | Baseline, small: Context
) -> tuple[RunConfig, Strategy | Baseline]:
    """A run on fewer rows: options that a rule chose are chosen again, for these rows."""
    config = replace(config, data=small.dataset.digest())
    if not isinstance(member, Strategy):
        return config, member
    decided = member.data_defaults(small.facts)
    anew = {name: value for name, value in decided.items() if name in config.by_rule}
    member = replace(member, **anew)
    strategy = {**config.strategy, "options": options_of(member)}
    settings = {**config.settings, **asdict(small.settings)}
    return replace(config, strategy=strategy, settings=settings), member
