"""One trial: a strategy with the options that are tried, trained on train and scored on dev."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from optuna import Trial, TrialPruned

from totune.baselines.base import Baseline
from totune.errors import TotuneError
from totune.metrics import METRICS
from totune.runs.callbacks import Callback
from totune.runs.config import Candidate, RunConfig
from totune.runs.context import Context
from totune.runs.run import configure
from totune.search.folder import checkpoint_path
from totune.search.records import State
from totune.training.history import EpochRecord

FAULTS = (TotuneError, RuntimeError, ValueError, MemoryError)  # of a trial, as of a run


@dataclass(frozen=True)
class Outcome:
    """How a trial ended; the fields are those of a `TrialRecord`."""

    state: State
    score: float | None = None
    curve: list[float] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


class Pruner(Callback):
    """Reports the best dev score so far after each epoch, and ends a trial that is hopeless.

    Args:
        trial: told of every epoch.
        metric: the dev metric that is searched on.
        reported: how many epochs it has been told of before it was interrupted.
    """

    def __init__(self, trial: Trial, metric: str, reported: int = 0) -> None:
        self._trial, self._metric, self._reported = trial, metric, reported
        self.curve: list[float] = []
        self.seconds = 0.0

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        """Looks at an epoch; what was decided before an interruption is not decided again.

        Raises:
            TrialPruned: if the trial is to end.
        """
        self.curve.append(epoch.dev[self._metric])
        self.seconds += epoch.seconds
        if len(self.curve) > self._reported:
            self._trial.report(best_of(self.curve, self._metric), step=len(self.curve) - 1)
        if len(self.curve) >= self._reported and self._trial.should_prune():
            raise TrialPruned

    def outcome(self, state: State, kept: float | None = None) -> Outcome:
        """The trial's; its score is that of the epoch it kept, or of its best if it was pruned."""
        score = best_of(self.curve, self._metric) if kept is None else kept
        return _scored(state, score, self.curve, self.seconds)


def attempt(member: Candidate, pruner: Pruner, seed: int, context: Context, study: Path) -> Outcome:
    """Trains and scores a member; looks at train and dev alone.

    Args:
        member: with the options that are tried.
        pruner: told of every epoch.
        seed: of initialisation and data order.
        context: what the study shares; frozen features come from its cache.
        study: the folder in which the state of an interrupted trial lies.

    Returns:
        What it came to; a fault of the trial itself is an outcome, too.
    """
    began = time.perf_counter()
    try:
        return _train(member, pruner, seed, replace(context, callback=pruner), study)
    except TrialPruned:
        return pruner.outcome("pruned")
    except FAULTS as error:
        kind = "" if isinstance(error, TotuneError) else f"{type(error).__name__}: "
        seconds = time.perf_counter() - began
        return Outcome("failed", None, pruner.curve, seconds, f"{kind}{error}")
    finally:
        context.cache.release()


def best_of(scores: Sequence[float], metric: str) -> float:
    """The best of some scores; nan if none is a number."""
    sign = METRICS[metric].sign
    numbers = [score for score in scores if math.isfinite(score)]
    return max(numbers, key=lambda score: sign * score, default=math.nan)


def _train(member: Candidate, pruner: Pruner, seed: int, context: Context, study: Path) -> Outcome:
    [run] = configure([member], [seed], context)
    if isinstance(run.method, Baseline):
        return _fit_baseline(run.config, run.method, context)
    checkpoint = checkpoint_path(study, run.fingerprint)
    try:
        history = run.fit(context, checkpoint).history
    except (TrialPruned, *FAULTS):
        checkpoint.unlink(missing_ok=True)
        raise
    checkpoint.unlink(missing_ok=True)
    kept = history.epochs[history.best].dev[context.settings.metric]
    return pruner.outcome("complete", kept)


def _fit_baseline(config: RunConfig, baseline: Baseline, context: Context) -> Outcome:
    data, task, metric = context.dataset, context.task, context.settings.metric
    began, filling = time.perf_counter(), context.cache.seconds
    embed = context.embed if baseline.needs_encoder else None
    targets = task.targets(data.train.labels or ())
    fitted = baseline.fit(data.train, targets, task, config.seeds["init"], embed)
    predictions = task.predictions(fitted.outputs(data.dev), data.dev.counts)
    score = task.evaluate(task.targets(data.dev.labels or ()), predictions)[metric]
    seconds = time.perf_counter() - began - (context.cache.seconds - filling)
    return _scored("complete", score, [], seconds)


def _scored(state: State, score: float, curve: list[float], seconds: float) -> Outcome:
    if math.isfinite(score):
        return Outcome(state, score, curve, seconds)
    return Outcome("failed", None, curve, seconds, "its dev score is not a number.")
