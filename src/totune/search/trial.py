"""One trial: a strategy with the options that are tried, trained on train and scored on dev."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from optuna import Trial, TrialPruned

from totune.baselines.base import Baseline
from totune.errors import TotuneError
from totune.metrics import METRICS
from totune.runs.callbacks import Callback
from totune.runs.config import Candidate, RunConfig
from totune.runs.context import Context
from totune.runs.run import configure
from totune.search.records import FOLDER, State, TrialRecord
from totune.text import hide_secrets
from totune.training.history import EpochRecord

FAULTS = (TotuneError, RuntimeError, ValueError, MemoryError)  # of a trial, as of a run


class Pruner(Callback):
    """Reports the best dev score so far after each epoch, and ends a trial that is hopeless.

    Args:
        trial: gets a report of every epoch.
        metric: the dev metric that is searched on.
        reported: how many epochs were reported before an interruption.

    Attributes:
        curve: the dev score after each epoch.
        seconds: wall time of the epochs.
    """

    def __init__(self, trial: Trial, metric: str, reported: int = 0) -> None:
        self.trial = trial
        self._metric, self._reported = metric, reported
        self.curve: list[float] = []
        self.seconds = 0.0

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        """Reports an epoch; what was decided before an interruption is not decided again.

        Raises:
            TrialPruned: if the trial is to end.
        """
        self.curve.append(epoch.dev[self._metric])
        self.seconds += epoch.seconds
        if len(self.curve) > self._reported:
            self.trial.report(best_of(self.curve, self._metric), step=len(self.curve) - 1)
        if len(self.curve) >= self._reported and self.trial.should_prune():
            raise TrialPruned


def run_trial(
    member: Candidate, pruner: Pruner, seed: int, context: Context, study: Path
) -> TrialRecord:
    """Trains and scores a member; looks at train and dev alone.

    Args:
        member: with the options that are tried.
        pruner: of the trial.
        seed: of initialisation and data order.
        context: what the study shares; frozen features come from its cache.
        study: the folder in which the state of an interrupted trial lies.

    Returns:
        How it ended; a fault of the trial itself is a record, too.
    """
    began, metric = time.perf_counter(), context.settings.metric
    state: State = "complete"
    score, error = math.nan, ""
    try:
        score, seconds = _train(member, pruner, seed, replace(context, callback=pruner), study)
    except TrialPruned:
        state, score, seconds = "pruned", best_of(pruner.curve, metric), pruner.seconds
    except FAULTS as fault:
        kind = "" if isinstance(fault, TotuneError) else f"{type(fault).__name__}: "
        error, seconds = hide_secrets(f"{kind}{fault}"), time.perf_counter() - began
    finally:
        context.cache.release()
    number, options, curve = pruner.trial.number, dict(pruner.trial.params), pruner.curve
    if math.isfinite(score):
        return TrialRecord(number, options, state, score, curve, seconds)
    error = error or "its dev score is not a number."
    return TrialRecord(number, options, "failed", None, curve, seconds, error=error)


def best_of(scores: Sequence[float], metric: str) -> float:
    """The best of some scores; nan if none is a number."""
    sign = METRICS[metric].sign
    numbers = [score for score in scores if math.isfinite(score)]
    return max(numbers, key=lambda score: sign * score, default=math.nan)


def _train(
    member: Candidate, pruner: Pruner, seed: int, context: Context, study: Path
) -> tuple[float, float]:
    """The dev score of the epoch that is kept, and the seconds without those of frozen features."""
    [run] = configure([member], [seed], context)
    if isinstance(run.method, Baseline):
        return _fit_baseline(run.config, run.method, context)
    checkpoint = study / FOLDER / "checkpoints" / f"{run.fingerprint}.pt"
    try:
        history = run.fit(context, checkpoint).history
    except (TrialPruned, *FAULTS):
        checkpoint.unlink(missing_ok=True)
        raise
    checkpoint.unlink(missing_ok=True)
    return history.epochs[history.best].dev[context.settings.metric], pruner.seconds


def _fit_baseline(config: RunConfig, baseline: Baseline, context: Context) -> tuple[float, float]:
    data, task, metric = context.dataset, context.task, context.settings.metric
    began, filling = time.perf_counter(), context.cache.seconds
    embed = context.embed if baseline.needs_encoder else None
    targets = task.targets(data.train.labels or ())
    fitted = baseline.fit(data.train, targets, task, config.seeds["init"], embed)
    dev = task.targets(data.dev.labels or ())
    score = task.measure(dev, fitted.outputs(data.dev), data.dev.counts)[metric]
    return score, time.perf_counter() - began - (context.cache.seconds - filling)
