"""A race on real runs: what is missing of each round is run, whoever does the work."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from totune.baselines.base import Baseline
from totune.data.splits import shrink
from totune.metrics import get_metric
from totune.racing.racing import Leg, Ran, conduct, find_legs, find_terms
from totune.racing.records import Race
from totune.racing.wording import tell
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
    """Runs a study in rounds; a finished run counts, so that one broken off goes on.

    Args:
        runs: those of the full study.
        context: what they share.
        store: where records are kept; `race.json` is written there after every round.
        tolerance: how much worse than the best is still good enough.
        fraction: share of the training rows of a first round with two seeds; None for no such.
        budget: seconds for all rounds together, as for `execute`; None for no limit.
        on_record: told the records on all training rows so far after each run.
        keep_all: keep the weights of every run.
        executor: who runs them; this process if None.

    Returns:
        The records on all training rows, in the order of `runs`, and the race.
    """
    strategies = list(dict.fromkeys(config.label for config, _ in runs))
    seeds = list(dict.fromkeys(config.seed for config, _ in runs))
    metric = get_metric(context.settings.metric)
    whole = _Course(runs, context, store, keep_all, executor, on_record)
    courses = {1.0: whole}
    if fraction is not None:
        courses[fraction] = _part(whole, fraction)
    began = time.monotonic()

    def perform(leg: Leg, racing: Sequence[str]) -> Ran:
        names = f"{len(racing)} strategies" if len(racing) > 1 else racing[0]
        rows = f"{leg.fraction:.3g} of the training rows, " if leg.fraction < 1 else ""
        context.progress.say(f"round: {rows}seed {', '.join(map(str, leg.seeds))}, {names}")
        return courses[leg.fraction].run(leg, racing, budget, time.monotonic() - began)

    def note(made: Race) -> None:
        if context.devices.is_main:
            made.save(store.folder)
        for gone in made.rounds[-1].left:
            context.progress.say(tell(gone, metric, tolerance))

    terms = find_terms(metric.name, tolerance, seeds, fraction)
    made = conduct(strategies, find_legs(seeds, fraction), terms, perform, note)
    return whole.records(), made


@dataclass
class _Course:
    """Runs on one share of the training rows."""

    runs: Runs
    context: Context
    store: Store
    keep_all: bool
    executor: Executor | None
    on_record: Callable[[list[RunRecord]], None] = lambda _: None
    drop_weights: bool = False
    asked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def run(self, leg: Leg, racing: Sequence[str], budget: float | None, spent: float) -> Ran:
        """Runs what is missing of a leg; what failed in an earlier round is not tried again."""
        self.asked |= {
            config.fingerprint
            for config, _ in self.runs
            if config.seed in leg.seeds and config.label in racing
        }
        wanted = [each for each in self.runs if each[0].fingerprint in self.asked - self.failed]
        tell, keep_all = self.on_record, self.keep_all
        execute(wanted, self.context, self.store, budget, tell, keep_all, self.executor, spent)
        self.context.devices.wait()  # all read what the main process wrote
        records = self.records()
        self.failed = {record.fingerprint for record in records if record.status == "failed"}
        if self.drop_weights and self.context.devices.is_main:
            for record in records:
                shutil.rmtree(self.store.weights(record.fingerprint), ignore_errors=True)
        arrays = {record.fingerprint: self.store.predictions(record) for record in records}
        return Ran(records, arrays, whole=len(records) == len(self.asked))

    def records(self) -> list[RunRecord]:
        """The records of what was asked for, in the order of the runs.

        They are read from the folder: of several processes each has measured seconds of its own,
        and all must come to the same decisions.
        """
        found = [
            self.store.record(config.fingerprint)
            for config, _ in self.runs
            if config.fingerprint in self.asked
        ]
        return [record for record in found if record is not None]


def _part(whole: _Course, fraction: float) -> _Course:
    """The same runs on a part of the training rows, drawn once; their weights are of no use."""
    context, data = whole.context, whole.context.dataset
    rows = shrink(data.splits(), data.columns.task, fraction, context.split_seed)["train"]
    small = context.with_splits({"train": rows})
    runs = [_on_part(config, member, small) for config, member in whole.runs]
    store = Store(whole.store.folder / PART / f"{fraction:g}")
    return _Course(runs, small, store, False, whole.executor, drop_weights=True)


def _on_part(
    config: RunConfig, member: Strategy | Baseline, small: Context
) -> tuple[RunConfig, Strategy | Baseline]:
    """A run on fewer rows: what the rule decided is decided anew, for these."""
    config = replace(config, data=small.dataset.digest())
    if not isinstance(member, Strategy):
        return config, member
    decided = member.data_defaults(small.facts)
    anew = {name: value for name, value in decided.items() if name in config.by_rule}
    member = replace(member, **anew)
    strategy = {**config.strategy, "options": options_of(member)}
    settings = {**config.settings, **asdict(small.settings)}
    return replace(config, strategy=strategy, settings=settings), member
