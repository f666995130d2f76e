"""How long a study takes here: from a few measured steps and the plans of its runs.

What is timed are, over a few train rows, a step of the strategy that trains the most blocks, a step
of the head alone on cached features, and the evaluation of the whole encoder. A step of a phase
costs its share of these, by the blocks above its frozen prefix. As runs finish, what they took
replaces what was expected.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from totune.errors import TotuneError
from totune.features import FeatureCache
from totune.inputs.batches import ordered_batches, shuffled_batches
from totune.inputs.encoded import EncodingOptions, frame
from totune.model import Model
from totune.progress import Progress
from totune.runs.context import Context
from totune.runs.records import RunRecord
from totune.runs.run import Run, Runs
from totune.strategies.base import Strategy
from totune.strategies.phases import Constant, Epochs, Group, Phase, Solved
from totune.text import counted
from totune.training.inputs import EVAL_TOKENS, InputSource, Split, open_source, predict
from totune.training.micro_batches import MicroBatches
from totune.training.optimizer import apply_phase, build_optimizer

TIMED_PIECES = 1024  # word pieces of a timed batch, at most, unless a single row has more
TIMED_SECONDS = 0.6  # what takes less is timed more often than twice
TIMES = 5  # at most
MOST_NAMED = 3  # parts of a study that are named with their time


class StudyTime:
    """What the runs of a study take: expected, then measured.

    Args:
        expected: seconds of one run of each strategy alone on this machine, by label; those that
            were not measured are absent.
        features: seconds of the frozen features that several runs share.
        at_once: how many runs take place at once, each on its share of the machine.
        scope: what the time left is of, where that is not the study: " of this round".
    """

    def __init__(
        self,
        expected: dict[str, float],
        features: float = 0.0,
        at_once: int = 1,
        scope: str = "",
    ) -> None:
        self._expected, self._features = expected, features
        self._at_once, self._scope = at_once, scope
        self._taken: dict[str, dict[str, float]] = {}  # seconds by label and fingerprint

    def note(self, record: RunRecord, seconds: float) -> None:
        """A run has taken so long; one that failed says nothing of the others."""
        if record.status == "finished":
            self._taken.setdefault(record.strategy, {}).setdefault(record.fingerprint, seconds)

    def of_run(self, label: str) -> float | None:
        """Seconds of a run of this strategy in its process; None where nothing was measured.

        The mean of its finished runs, or what was expected, corrected by the runs of others.
        """
        if label in self._taken:
            return float(np.mean(list(self._taken[label].values())))
        if label not in self._expected:
            return None
        return self._expected[label] * self._at_once * self._correction()

    def surely(self, label: str) -> float:
        """Seconds that a run of a strategy that has not run yet will surely take.

        Half of what is expected, since a busy machine is measured too slow, and nothing as long as
        no run has shown what expectations are worth.
        """
        return (self.of_run(label) or 0.0) / 2 if self._taken else 0.0

    def _correction(self) -> float:
        """How much longer runs take than expected, as if the longest had once been on time.

        So short runs, of which most is spent beside the steps, say little of long ones.
        """
        known = [label for label in self._taken if label in self._expected]
        taken = sum(sum(self._taken[label].values()) for label in known) / self._at_once
        expected = sum(self._expected[label] * len(self._taken[label]) for label in known)
        prior = max(self._expected.values())
        if known:
            expected += self._features
        return (taken + prior) / (expected + prior) if prior else 1.0

    def _to_come(self) -> float:
        """Seconds of shared features that no run has computed yet."""
        return 0.0 if any(label in self._expected for label in self._taken) else self._features

    def of_strategy(self, label: str, count: int) -> float | None:
        """Seconds of so many runs of a strategy, those at once counted once."""
        each = self.of_run(label)
        return None if each is None else count * each / self._at_once

    def total(self, runs: Runs) -> float:
        """Seconds of all these runs, as far as they are known."""
        each = [self.of_strategy(run.label, 1) or 0.0 for run in runs]
        return self._to_come() + sum(each)

    def left(self, runs: Runs) -> str:
        """What is said beside a run: " (about 6 min left)", or nothing where nothing is known.

        Runs of which nothing is known yet count nothing: baselines, which seldom take long.
        """
        if all(self.of_run(run.label) is None for run in runs):
            return ""
        return f" ({about(self.total(runs))} left{self._scope})"

    def describe(self, runs: Runs, search: float = 0.0, at_most: bool = False) -> str:
        """The sentence before training.

        Args:
            runs: that are to be done.
            search: seconds of a search before them, at most.
            at_most: whether some of the runs may turn out not to be needed.
        """
        counts = Counter(run.label for run in runs)
        known = {label: self.of_strategy(label, count) for label, count in counts.items()}
        seconds = {label: each for label, each in known.items() if each is not None}
        parts = {"search": search, "frozen features": self._to_come(), **seconds}
        long = sorted((name for name in parts if parts[name] >= 60), key=lambda n: -parts[n])
        named = long[:MOST_NAMED]
        told = [f"{name} {about(parts[name], '')}" for name in named]
        whole = self.total(runs) + search
        if told and not seconds.keys() <= set(named):
            rest = whole - sum(parts[name] for name in named)
            told.append(f"the rest {about(rest, '')}")
        details = [f" ({', '.join(told)})"] if told else []
        unknown = [label for label in counts if label not in seconds]
        if unknown:
            details.append(f", {' and '.join(unknown)} not counted")
        most = ", at most" if at_most or search else ""
        said = about(whole)
        return (
            f"{said[0].upper()}{said[1:]} in all{most}: {counted(len(runs), 'run')}"
            f"{''.join(details)}."
        )

    def beyond(self, runs: Runs, budget: float) -> str:
        """The runs that a budget of so many seconds is expected to leave out, in words."""
        spent = self._to_come()
        late = Counter[str]()
        for run in runs:
            seconds = self.of_strategy(run.label, 1) or 0.0
            if spent + seconds > budget:
                late[run.label] += 1
            else:
                spent += seconds
        planned = Counter(run.label for run in runs)
        return ", ".join(f"{label} ({late[label]} of {planned[label]} runs)" for label in late)


def about(seconds: float, word: str = "about ") -> str:
    """A time in round figures: "under 1 min", "about 12 min", "about 25 min", "about 3.5 h"."""
    minutes = seconds / 60
    if minutes < 1:
        return "under 1 min"
    if minutes < 20:
        return f"{word}{round(minutes)} min"
    if minutes < 57.5:
        return f"{word}{5 * round(minutes / 5)} min"
    hours = minutes / 60
    return f"{word}{round(hours, 1) if hours < 10 else round(hours):g} h"


def expect_time(
    runs: Runs, context: Context, at_once: int = 1, scope: str = ""
) -> StudyTime | None:
    """Times a few steps, and says what runs take by their plans; None where that cannot be said.

    Baselines are not counted: what they take depends on the words of the texts. A phase counts with
    all the epochs that its stop allows. Nothing is said where several processes share each run, and
    where a step fails, since its run will say why.

    Args:
        runs: of the study, whose splits are tokenised.
        context: what they share.
        at_once: how many take place at once.
        scope: as `StudyTime` takes it.
    """
    first = {run.label: run for run in reversed(runs) if isinstance(run.method, Strategy)}
    if not first or context.devices.world > 1:
        return None
    try:
        plans = {label: _Planned(run, context) for label, run in first.items()}
        speed = _measure(min(plans.values(), key=lambda plan: plan.least), context)
        shared: dict[tuple[object, ...], float] = {}
        expected = {label: plan.seconds(speed, shared) for label, plan in plans.items()}
        if context.devices.device.type == "cuda":
            torch.cuda.empty_cache()  # for runs in other processes
    except (TotuneError, RuntimeError, ValueError, MemoryError):
        return None
    return StudyTime(expected, sum(shared.values()), at_once, scope)


@dataclass(frozen=True)
class _Speed:
    """Seconds for each word piece, padding included.

    Attributes:
        block: of a step, for each block that trains.
        head: of a step of the head on cached features.
        forward: of evaluating the whole encoder.
    """

    block: float
    head: float
    forward: float


class _Planned:
    """A run's phases, with the depth of the frozen prefix of each."""

    def __init__(self, run: Run, context: Context) -> None:
        self.run, self._context = run, context
        self._spec = run.spec(context)
        self._model, plan = self._spec.check()
        self.phases = [(_prefix(self._model, phase), phase) for phase in plan]
        self._depth = self._model.encoder.depth

    @property
    def least(self) -> int:
        """The depth of the prefix that stays frozen in all phases."""
        return min(frozen for frozen, _ in self.phases)

    def seconds(self, speed: _Speed, shared: dict[tuple[object, ...], float]) -> float:
        """Seconds of a run without the frozen features that runs share, which go to `shared`."""
        options, context = self._spec.encoding_options, self._context
        pieces = {
            name: _word_pieces(context.split(name, options), context)
            for name, rows in context.dataset.splits().items()
            if len(rows)
        }
        train, dev = pieces["train"], pieces.get("dev", 0)
        seconds, untouched, forward = 0.0, self._depth, 0.0
        for frozen, phase in self.phases:
            above = self._depth - max(frozen, 0)
            forward = speed.forward * above / self._depth
            view = self._model.view(frozen)
            cost = sum(pieces.values()) * (speed.forward - forward)
            if view is not None and frozen <= untouched:
                shared[frozen, view, options] = cost
            elif view is not None:
                seconds += cost
            steps = 0.0 if isinstance(phase.stop, Solved) else speed.head + speed.block * above
            scored = dev + (train if phase.stop.compares else 0)
            seconds += phase.stop.num_train_epochs * (train * steps + scored * forward)
            untouched = min(untouched, frozen)
        return seconds + (dev + pieces.get("test", 0)) * forward


def _prefix(model: Model, phase: Phase) -> int:
    apply_phase(model, phase)
    return model.encoder.frozen_depth()


def _word_pieces(split: Split, context: Context) -> int:
    """Word pieces of an epoch over a split, padding included."""
    units, settings = split.units, context.settings
    if split.name == "train":
        size, tokens = settings.train_batch_size, settings.tokens_per_batch
        batches = shuffled_batches(units.lengths, size, 0, 0, tokens, units.sizes)
    else:
        batches = ordered_batches(units.lengths, EVAL_TOKENS, EVAL_TOKENS)
    return sum(len(batch) * int(units.lengths[batch].max()) for batch in batches)


def _measure(planned: _Planned, context: Context) -> _Speed:
    """The speed at a few rows, of the strategy that trains the most blocks."""
    frozen, phase = min(planned.phases, key=lambda each: each[0])
    spec = planned.run.spec(context)
    model, _ = spec.build(planned.run.seed)
    model.to(context.devices.device)
    split = _few_rows(context, spec.encoding_options)
    lengths = split.units.lengths
    pieces = len(lengths) * int(lengths.max())
    head_alone = Phase("head", (Group("head", 1e-3),), Constant(), Epochs(1))
    whole = open_source(split, model, None, -1)
    forward = _least_seconds(lambda: predict(model, whole, context.devices), context)
    step = _step_seconds(model, phase, whole, context)
    with tempfile.TemporaryDirectory() as folder:
        cache, depth = FeatureCache(Path(folder)), model.encoder.depth
        apply_phase(model, head_alone)
        cached = open_source(split, model, cache, depth, training=True)
        head = _step_seconds(model, head_alone, cached, context)
        cache.release()
    above = depth - max(frozen, 0)
    block = max(step - head, 0.0) / above if above else 0.0
    return _Speed(block / pieces, head / pieces, forward / pieces)


def _few_rows(context: Context, options: EncodingOptions) -> Split:
    """A batch of rows from all over the train split, or fewer where they are long."""
    rows = context.dataset.train
    longest = int(context.split("train", options).units.lengths.max())
    count = min(context.settings.train_batch_size, len(rows), max(1, TIMED_PIECES // longest))
    few = rows.take(np.linspace(0, len(rows) - 1, count).astype(int))
    units = frame(few, context.loaded.tokenizer, context.max_length, options)
    return Split.labelled("train", units, context.task, few.labels or ())


def _step_seconds(model: Model, phase: Phase, source: InputSource, context: Context) -> float:
    """Seconds of a step over all rows of `source` in a phase."""
    groups = apply_phase(model, phase)
    if not groups:
        return 0.0
    optimizer = build_optimizer(groups)
    model.prepare_training(context.devices.device)
    model.freeze_prefix()
    model.train()
    parts = MicroBatches(model, context.devices, Progress())
    parts.objective = phase.objective
    units = np.arange(len(source.units))

    def step() -> None:
        parts.backward(model, source, units, 1 / max(1, source.split.positions))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return _least_seconds(step, context)


def _least_seconds(work: Callable[[], object], context: Context) -> float:
    """The least seconds of a few times: the first prepares, and others may be held up."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < TIMES and sum(found) < TIMED_SECONDS):
        began = time.perf_counter()
        work()
        if context.devices.device.type != "cpu":
            torch.accelerator.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)
