"""The search of one strategy: trials until its budget is used up, then a record."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import optuna
from filelock import FileLock, Timeout
from optuna import Study, Trial
from optuna.pruners import MedianPruner
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

from totune.errors import ConfigError
from totune.progress import Progress
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.run import configure
from totune.runs.store import Store
from totune.search.budget import Budget
from totune.search.folder import database_path, lock_path
from totune.search.queue import OUTCOME, Queue
from totune.search.records import SearchRecord
from totune.search.results import (
    STATES,
    best_trial,
    direction_of,
    importance_of,
    trial_records,
)
from totune.search.sampling import SeededSampler, distribution_of
from totune.search.space import Space, label_of, range_to_json, space_of
from totune.search.storage import opened
from totune.search.trying import Pruner, attempt
from totune.search.wording import tell_trial

_OPTUNA = {ours: theirs for theirs, ours in STATES.items()}


def search(
    member: Candidate,
    context: Context,
    store: Store,
    budget: Budget,
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
        queue = Queue(study, kept, budget, distributions, shared=storage is not None)
        while (trial := queue.ask()) is not None:
            with queue.running(trial):
                _run(trial, queue, member, context, seed, store.folder)
            _tell(trial.number, queue, budget, context)
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
        direction=direction_of(context.settings.metric),
        load_if_exists=True,
    )


def _run(
    trial: Trial, queue: Queue, member: Candidate, context: Context, seed: int, study: Path
) -> None:
    """Trains a trial, or repeats the numbers of an earlier one with the same options."""
    reported, twin = queue.reported(trial), queue.twin(trial)
    if twin is not None:
        for step, score in sorted(twin.intermediate_values.items())[reported:]:
            trial.report(score, step)
        again = {**twin.user_attrs[OUTCOME], "same_as": twin.number}
        return queue.tell(trial, twin.state, twin.value, again)
    tried = replace(member, options={**member.options, **trial.params})
    pruner = Pruner(trial, context.settings.metric, reported)
    outcome = attempt(tried, pruner, seed, context, study)
    facts = {"curve": outcome.curve, "seconds": outcome.seconds, "error": outcome.error}
    return queue.tell(trial, _OPTUNA[outcome.state], outcome.score, facts)


def _record(
    trials: Sequence[FrozenTrial],
    label: str,
    space: Space,
    budget: Budget,
    context: Context,
    seed: int,
) -> SearchRecord:
    metric = context.settings.metric
    records = trial_records(trials, space.ranges)
    best = best_trial(records, metric)
    return SearchRecord(
        strategy=label,
        metric=metric,
        ranges={name: range_to_json(range_) for name, range_ in space.ranges.items()},
        fixed=space.fixed,
        trials=records,
        best=0 if best is None else best.number,
        importance=importance_of(trials, metric, seed),
        budget=budget.to_json(),
        seed=seed,
    )


def _tell(number: int, queue: Queue, budget: Budget, context: Context) -> None:
    metric = context.settings.metric
    records = {trial.number: trial for trial in trial_records(queue.trials(), ())}
    if number in records:  # else others have used up the time before it
        best = best_trial(list(records.values()), metric)
        said = tell_trial(records[number], best, budget.trials, metric)
        context.progress.say(said)


@contextlib.contextmanager
def _alone(study: Path, label: str, progress: Progress) -> Iterator[None]:
    """Keeps other processes from the same search in this folder while the block runs."""
    path = lock_path(study, label)
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
