"""The search of one strategy: trials until its budget is used up, then a record."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna import Study, Trial
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.pruners import MedianPruner
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from totune.errors import ConfigError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.run import configure
from totune.runs.store import Store
from totune.search.queue import RESULT, SearchBudget, TrialQueue
from totune.search.records import SearchRecord, State, TrialRecord, record_path
from totune.search.space import (
    SeededSampler,
    Space,
    distribution_of,
    label_of,
    range_to_json,
    space_of,
)
from totune.search.storage import database_path, opened
from totune.search.trial import Pruner, run_trial

STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
ENOUGH = 4  # complete trials, no two alike, from which the importance of options is estimated


def search(
    member: Candidate,
    context: Context,
    store: Store,
    budget: SearchBudget,
    seed: int,
    storage: str | None = None,
) -> SearchRecord:
    """Searches the options of a member that nobody has set, on train and dev alone.

    Trial 0 has the defaults; a trial that is worse than the median of the others after as many
    epochs is ended early. A trial that was interrupted is taken up from its last epoch. What was
    searched before under equal settings is not searched again, and a larger budget goes on.

    Args:
        member: a strategy or baseline that has options to search.
        context: what the runs of the study share.
        store: the study's folder.
        budget: of this member.
        seed: of the sampler, and of every trial's training.
        storage: URL of a database, in which several processes may share the search; None for a
            file in the study's folder, which one process uses at a time.

    Raises:
        ConfigError: if there is nothing to search, or the storage cannot be used.
        RunError: if the storage is lost meanwhile.
    """
    space = space_of(member, context)
    member = replace(member, label=label_of(member, space))
    if not space.ranges:
        raise ConfigError(f"{member.label} has no option left to search.")
    alone = _alone(store.folder, member.label, context.progress)
    place = storage or database_path(store.folder)
    with contextlib.nullcontext() if storage else alone, opened(place) as kept:
        study = _open_study(member, space, context, seed, kept)
        distributions = {name: distribution_of(range_) for name, range_ in space.ranges.items()}
        queue = TrialQueue(study, kept, budget, distributions, shared=storage is not None)
        while (trial := queue.ask()) is not None:
            with queue.running(trial):
                _run(trial, queue, member, context, seed, store.folder)
            _say_ended(trial.number, queue, budget, context)
        return _record(queue.trials(), member.label, space, budget, context, seed)


def _open_study(
    member: Candidate, space: Space, context: Context, seed: int, storage: RDBStorage
) -> Study:
    """Optuna's study; its name says what the numbers depend on, so other settings are another."""
    [run] = configure([member], [seed], context)
    ranges = {name: range_to_json(range_) for name, range_ in space.ranges.items()}
    facts = json.dumps([run.config.to_json(), ranges], sort_keys=True)
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return optuna.create_study(
        storage=storage,
        sampler=SeededSampler(space.defaults, seed),
        pruner=MedianPruner(n_startup_trials=4, n_warmup_steps=1),
        study_name=f"{member.label[:200]} {digest}",
        direction=_direction(context.settings.metric),
        load_if_exists=True,
    )


def _run(
    trial: Trial, queue: TrialQueue, member: Candidate, context: Context, seed: int, study: Path
) -> None:
    """Trains a trial, or repeats the numbers of an earlier one with the same options."""
    reported, twin = queue.reported(trial), queue.twin(trial)
    if twin is not None:
        for step, score in sorted(twin.intermediate_values.items())[reported:]:
            trial.report(score, step)
        again = {**twin.user_attrs[RESULT], "same_as": twin.number}
        return queue.tell(trial, twin.state, twin.value, again)
    tried = replace(member, options={**member.options, **trial.params})
    pruner = Pruner(trial, context.settings.metric, reported)
    record = run_trial(tried, pruner, seed, context, study)
    [state] = [theirs for theirs, ours in STATES.items() if ours == record.state]
    facts = {"curve": record.curve, "seconds": record.seconds, "error": record.error}
    return queue.tell(trial, state, record.score, facts)


def _record(
    trials: Sequence[FrozenTrial],
    label: str,
    space: Space,
    budget: SearchBudget,
    context: Context,
    seed: int,
) -> SearchRecord:
    metric = context.settings.metric
    records = [_trial_record(trial, space.ranges) for trial in trials if trial.state.is_finished()]
    best = best_trial(records, metric)
    return SearchRecord(
        strategy=label,
        metric=metric,
        ranges={name: range_to_json(range_) for name, range_ in space.ranges.items()},
        fixed=space.fixed,
        trials=records,
        best=0 if best is None else best.number,
        importance=_importance(trials, metric, seed),
        budget=budget.to_json(),
        seed=seed,
    )


def _trial_record(trial: FrozenTrial, options: Mapping[str, Any]) -> TrialRecord:
    """The record of a trial that has ended, with its options in this order."""
    tried = {name: trial.params[name] for name in options}
    facts: dict[str, Any] = trial.user_attrs.get(RESULT, {})
    return TrialRecord(trial.number, tried, STATES[trial.state], trial.value, **facts)


def best_trial(trials: Sequence[TrialRecord], metric: str) -> TrialRecord | None:
    """The complete trial with the best score, of equals the first; None if there is none.

    One that was ended early had a better one beside it after as many epochs.
    """
    sign = METRICS[metric].sign
    scores = {t.number: sign * t.score for t in trials if t.score is not None}
    complete = [trial for trial in trials if trial.state == "complete"]
    return max(complete, key=lambda t: (scores[t.number], -t.number), default=None)


def _importance(trials: Sequence[FrozenTrial], metric: str, seed: int) -> dict[str, float]:
    """How much of the variance of scores each option explains, by fANOVA (Hutter et al. 2014).

    Returns:
        Shares that sum to 1, the largest first; empty where too few trials are complete, or all
        have one score.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    different = {repr(sorted(trial.params.items())) for trial in complete}
    if len(different) < ENOUGH or len({trial.value for trial in complete}) == 1:
        return {}
    study = optuna.create_study(direction=_direction(metric))
    study.add_trials(complete)
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=seed))
    return {name: float(share) for name, share in found.items()}


def _direction(metric: str) -> StudyDirection:
    """What Optuna calls the direction of progress."""
    higher = METRICS[metric].higher_is_better
    return StudyDirection.MAXIMIZE if higher else StudyDirection.MINIMIZE


def _say_ended(number: int, queue: TrialQueue, budget: SearchBudget, context: Context) -> None:
    ended = [_trial_record(trial, {}) for trial in queue.trials() if trial.state.is_finished()]
    own = next((trial for trial in ended if trial.number == number), None)
    if own is not None:  # else others have used up the time before it
        metric = context.settings.metric
        said = describe_trial(own, best_trial(ended, metric), budget.trials, metric)
        context.progress.say(said)


def describe_trial(
    trial: TrialRecord, best: TrialRecord | None, of: int | None, metric: str
) -> str:
    """A trial that has ended, in a line; the job's title has named the strategy.

    Args:
        trial: which has ended.
        best: of all so far; None if none is complete.
        of: how many there will be; None if that depends on time.
        metric: the dev metric.
    """
    count = f"{trial.number + 1}" if of is None else f"{trial.number + 1}/{of}"
    said = f"trial {count}"
    if trial.state == "failed":
        return f"{said} failed: {trial.error}"
    ended = " (ended early)" if trial.state == "pruned" else ""
    again = "" if trial.same_as is None else f", the same as trial {trial.same_as + 1}"
    so_far = "" if best is None else f"; best {describe_score(metric, best.score)}"
    return f"{said}: {describe_score(metric, trial.score)}{ended}{again}{so_far}"


def describe_score(metric: str, score: float | None) -> str:
    """In points where the metric has them."""
    if score is None:
        return "no score"
    return f"{100 * score:.1f}" if METRICS[metric].unit == "points" else f"{score:.4g}"


@contextlib.contextmanager
def _alone(study: Path, label: str, progress: Progress) -> Iterator[None]:
    """Keeps other processes from the same search in this folder while the block runs."""
    path = record_path(study, label).with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.say(f"Another process searches {label} in this folder; waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
