"""A race on real runs: what is missing of each round is run, whoever does the work."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from totune.data.splits import Splits, shrink
from totune.metrics import get_metric
from totune.racing.racing import Leg, Ran, conduct, find_legs, find_terms
from totune.racing.records import Race
from totune.racing.wording import tell
from totune.registry import options_of
from totune.runs.context import Context
from totune.runs.records import RunRecord
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
    """Runs a study in rounds; a finished run counts, so that one broken off goes on.

    Args:
        runs: those of the full study.
        runner: executes them; `race.json` is written to its store after every round.
        tolerance: how much worse than the best is still good enough.
        fraction: share of the training rows of a first round with two seeds; None for no such.
        budget: seconds for all rounds together, as for `execute`; None for no limit.
        on_record: told the records on all training rows so far after each run.

    Returns:
        The records on all training rows, in the order of `runs`, and the race.
    """
    context, store = runner.context, runner.store
    strategies = list(dict.fromkeys(run.label for run in runs))
    seeds = list(dict.fromkeys(run.seed for run in runs))
    metric = get_metric(context.settings.metric)
    whole = _Course(runs, runner, on_record)
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
    runner: Runner
    on_record: Callable[[list[RunRecord]], None] = lambda _: None
    drop_weights: bool = False
    asked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def run(self, leg: Leg, racing: Sequence[str], budget: float | None, spent: float) -> Ran:
        """Runs what is missing of a leg; what failed in an earlier round is not tried again."""
        self.asked |= {
            run.fingerprint for run in self.runs if run.seed in leg.seeds and run.label in racing
        }
        wanted = [run for run in self.runs if run.fingerprint in self.asked - self.failed]
        self.runner.execute(wanted, budget, self.on_record, spent)
        self.runner.context.devices.wait()  # all read what the main process wrote
        records = self.records()
        self.failed = {record.fingerprint for record in records if record.status == "failed"}
        if self.drop_weights:
            self.runner.drop_weights(records)
        store = self.runner.store
        arrays = {record.fingerprint: store.predictions(record) for record in records}
        return Ran(records, arrays, whole=len(records) == len(self.asked))

    def records(self) -> list[RunRecord]:
        """The records of what was asked for, in the order of the runs.

        They are read from the folder: of several processes each has measured seconds of its own,
        and all must come to the same decisions.
        """
        found = [
            self.runner.store.record(run.fingerprint)
            for run in self.runs
            if run.fingerprint in self.asked
        ]
        return [record for record in found if record is not None]


def _part(whole: _Course, fraction: float) -> _Course:
    """The same runs on a part of the training rows, drawn once; their weights are of no use."""
    context = whole.runner.context
    data = context.dataset
    splits = Splits(data.splits(), ())
    rows = shrink(splits, data.columns.task, fraction, context.split_seed).parts["train"]
    small = context.with_splits({"train": rows})
    runs = [_on_part(run, small) for run in whole.runs]
    store = Store(whole.runner.store.folder / PART / f"{fraction:g}")
    return _Course(runs, Runner(small, store, whole.runner.executor), drop_weights=True)


def _on_part(run: Run, small: Context) -> Run:
    """A run on fewer rows: what the rule decided is decided anew, for these."""
    config, member = replace(run.config, data=small.dataset.digest()), run.method
    if not isinstance(member, Strategy):
        return Run(config, member)
    decided = member.data_defaults(small.facts)
    anew = {name: value for name, value in decided.items() if name in config.by_rule}
    member = replace(member, **anew)
    strategy = {**config.strategy, "options": options_of(member)}
    settings = {**config.settings, **asdict(small.settings)}
    return Run(replace(config, strategy=strategy, settings=settings), member)
