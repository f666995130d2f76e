"""From Optuna's trials to the record of a search."""

from collections.abc import Iterable, Sequence
from typing import Any

import optuna
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from totune.metrics import METRICS
from totune.search.queue import OUTCOME
from totune.search.records import State, TrialRecord

STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
ENOUGH = 4  # complete trials, no two alike, from which the importance of options is told


def trial_records(trials: Iterable[FrozenTrial], options: Iterable[str]) -> list[TrialRecord]:
    """The records of those that have ended, with their options in this order."""
    order = list(options)
    return [_record(trial, order) for trial in trials if trial.state.is_finished()]


def _record(trial: FrozenTrial, order: Sequence[str]) -> TrialRecord:
    facts: dict[str, Any] = trial.user_attrs.get(OUTCOME, {})
    return TrialRecord(
        number=trial.number,
        options={name: trial.params[name] for name in order},
        state=STATES[trial.state],
        score=trial.value,
        **facts,
    )


def best_trial(trials: Sequence[TrialRecord], metric: str) -> TrialRecord | None:
    """The complete trial with the best score, of equals the first; None if there is none.

    One that was ended early had a better one beside it after as many epochs.
    """
    sign = METRICS[metric].sign
    scores = {t.number: sign * t.score for t in trials if t.score is not None}
    complete = [trial for trial in trials if trial.state == "complete"]
    return max(complete, key=lambda t: (scores[t.number], -t.number), default=None)


def importance_of(trials: Sequence[FrozenTrial], metric: str, seed: int) -> dict[str, float]:
    """How much of the variance of scores each option explains, by fANOVA (Hutter et al. 2014).

    Returns:
        Shares that sum to 1, the largest first; empty where too few trials are complete, or all
        have one score.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    different = {repr(sorted(trial.params.items())) for trial in complete}
    if len(different) < ENOUGH or len({trial.value for trial in complete}) == 1:
        return {}
    study = optuna.create_study(direction=direction_of(metric))
    study.add_trials(complete)
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=seed))
    return {name: float(share) for name, share in found.items()}


def direction_of(metric: str) -> StudyDirection:
    """What Optuna calls the direction of progress."""
    higher = METRICS[metric].higher_is_better
    return StudyDirection.MAXIMIZE if higher else StudyDirection.MINIMIZE
