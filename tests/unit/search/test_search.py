"""A search: fair, repeatable, on dev alone, and the same whether it was interrupted or not."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from optuna import Trial
from tests.unit.search.samples import FEATURES, TF_IDF, context_of, told, without_times

from totune.errors import ConfigError, RunError
from totune.registry import options_of
from totune.runs.config import Candidate, RunConfig
from totune.runs.context import Context
from totune.runs.run import Run
from totune.runs.store import Store
from totune.search import search as searching
from totune.search.queue import SearchBudget, TrialQueue
from totune.search.records import SearchRecord
from totune.search.search import search
from totune.search.trial import Pruner
from totune.training.history import EpochRecord
from totune.training.trainer import Trainer

TRIALS = 5


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def undisturbed_search(search_context: Context, store: Store) -> SearchRecord:
    """A search that nothing disturbed."""
    return search(FEATURES, search_context, store, SearchBudget(trials=TRIALS), seed=3)


def test_a_search_tries_the_defaults_and_then_others(undisturbed_search: SearchRecord) -> None:
    assert [trial.number for trial in undisturbed_search.trials] == list(range(TRIALS))
    made = FEATURES.create()
    assert undisturbed_search.trials[0].options == {
        "learning_rate": options_of(made)["learning_rate"],
        "head.dropout": 0.1,
    }
    rates = {trial.options["learning_rate"] for trial in undisturbed_search.trials}
    assert len(rates) == TRIALS
    assert all(3e-4 <= rate <= 3e-2 for rate in rates)
    assert set(undisturbed_search.ranges) == {"learning_rate", "head.dropout"}
    assert undisturbed_search.fixed == dict(FEATURES.options)
    assert (undisturbed_search.strategy, undisturbed_search.metric, undisturbed_search.seed) == (
        "feature-extraction",
        "accuracy",
        3,
    )
    assert undisturbed_search.budget == {"trials": TRIALS}


def test_a_trial_is_scored_by_the_epoch_that_it_keeps(undisturbed_search: SearchRecord) -> None:
    complete = [trial for trial in undisturbed_search.trials if trial.state == "complete"]
    assert complete
    for trial in complete:
        assert len(trial.curve) == 3
        assert trial.score in (trial.curve[-1], max(trial.curve))
        assert trial.seconds > 0
    assert undisturbed_search.winner.score == max(trial.score or 0.0 for trial in complete)


def test_nothing_stays_open_and_no_state_is_left(
    undisturbed_search: SearchRecord, search_context: Context, store: Store
) -> None:
    assert not search_context.cache._open
    assert not list((store.folder / "search" / "checkpoints").iterdir())


def test_frozen_features_are_computed_once_for_all_trials(
    undisturbed_search: SearchRecord, search_context: Context
) -> None:
    assert len(search_context.cache.entries()) == 2  # train and dev


def test_every_trial_is_told_with_the_best_so_far(tmp_path: Path, search_context: Context) -> None:
    search_context = replace(search_context, progress=type(search_context.progress)())
    search(TF_IDF, search_context, Store(tmp_path), SearchBudget(trials=2), seed=0)
    first, second = told(search_context)
    assert first.startswith("trial 1/2: ")
    assert second.startswith("trial 2/2: ")
    assert "; best " in second


def no_training(*_: object) -> None:
    raise AssertionError("something is trained")


def test_what_was_searched_before_is_not_trained_again(
    undisturbed_search: SearchRecord,
    search_context: Context,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "run_trial", no_training)
    again = search(FEATURES, search_context, store, SearchBudget(trials=TRIALS), seed=3)
    assert again == undisturbed_search
    fewer = search(FEATURES, search_context, store, SearchBudget(trials=3), seed=3)
    assert fewer.trials == undisturbed_search.trials[:3]


@pytest.mark.parametrize(
    ("member", "seed"),
    [
        (FEATURES, 4),
        (replace(FEATURES, options={**FEATURES.options, "patience": 4}), 3),
        (replace(FEATURES, options={**FEATURES.options, "head.dropout": 0.1}), 3),
    ],
    ids=["seed", "option", "range"],
)
def test_other_settings_are_another_search(
    undisturbed_search: SearchRecord,
    search_context: Context,
    store: Store,
    member: Candidate,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "run_trial", no_training)
    with pytest.raises(AssertionError, match="something is trained"):
        search(member, search_context, store, SearchBudget(trials=1), seed)


class Killed(BaseException):
    """Stands for the end of the process, which cleans nothing up."""


def ask_killed(
    self: TrialQueue, real: Callable[..., Trial | None] = TrialQueue.ask
) -> Trial | None:
    trial = real(self)
    if trial is not None and trial.number == 3:
        raise Killed
    return trial


def tell_killed(
    self: TrialQueue, trial: Trial, *rest: object, real: Callable[..., None] = TrialQueue.tell
):
    if trial.number == 3:
        raise Killed
    real(self, trial, *rest)


def epoch_killed(before: bool) -> Callable[..., None]:
    real = Pruner.on_epoch_end

    def on_epoch_end(self: Pruner, config: RunConfig, record: EpochRecord) -> None:
        last = self.trial.number == 3 and record.epoch == 2
        if last and before:
            raise Killed
        real(self, config, record)
        if last:
            raise Killed

    return on_epoch_end


@pytest.mark.parametrize(
    ("place", "killer"),
    [
        pytest.param((TrialQueue, "ask"), ask_killed, id="when it was asked for"),
        pytest.param((Pruner, "on_epoch_end"), epoch_killed(True), id="before an epoch was told"),
        pytest.param((Pruner, "on_epoch_end"), epoch_killed(False), id="after it was told"),
        pytest.param((TrialQueue, "tell"), tell_killed, id="when it had ended"),
    ],
)
def test_a_killed_search_ends_as_if_it_had_not_been(
    place: tuple[type, str],
    killer: Callable[..., None],
    undisturbed_search: SearchRecord,
    search_context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, budget = Store(tmp_path), SearchBudget(trials=TRIALS)
    with monkeypatch.context() as patch:
        patch.setattr(*place, killer)
        patch.setattr(TrialQueue, "_put_back", lambda *_: None)
        with pytest.raises(Killed):
            search(FEATURES, search_context, store, budget, seed=3)
    began: list[int] = []
    real = Trainer._epoch

    def epoch(self: Trainer, *rest: object) -> EpochRecord:
        began.append(len(self.history.epochs))
        return real(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_epoch", epoch)
    again = search(FEATURES, search_context, store, budget, seed=3)
    assert without_times(again) == without_times(undisturbed_search)
    assert began[0] == (2 if killer.__name__ == "on_epoch_end" else 0)


def test_tpe_goes_on_where_it_was(search_context: Context, tmp_path: Path) -> None:
    """From trial 10 on, what is tried follows from the trials before it."""
    store, once = Store(tmp_path / "parts"), Store(tmp_path / "once")
    for trials in (10, 12, 14):
        parts = search(TF_IDF, search_context, store, SearchBudget(trials=trials), seed=1)
    at_once = search(TF_IDF, search_context, once, SearchBudget(trials=14), seed=1)
    assert without_times(parts) == without_times(at_once)
    assert len({str(trial.options) for trial in parts.trials}) > 10


def test_an_interrupted_trial_is_put_back(
    search_context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(searching, "run_trial", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search(TF_IDF, search_context, store, SearchBudget(trials=2), seed=0)
    assert len(search(TF_IDF, search_context, store, SearchBudget(trials=2), seed=0).trials) == 2


def test_a_trial_with_known_options_repeats_its_numbers(
    search_context: Context, tmp_path: Path
) -> None:
    member = Candidate("tf-idf", {"C": 1.0})
    record = search(member, search_context, Store(tmp_path), SearchBudget(trials=6), seed=0)
    originals = {trial.options["ngrams"]: trial for trial in reversed(record.trials)}
    assert len(originals) <= 3
    for trial in record.trials:
        original = originals[trial.options["ngrams"]]
        assert trial.same_as == (None if trial is original else original.number)
        assert (trial.score, trial.seconds) == (original.score, original.seconds)
    assert record.importance == {}


def test_a_hopeless_trial_is_ended_early(
    search_context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From trial 4 on the curves are worse than those of the four before."""
    scored = iter([0.9] * 12 + [0.1] * 100)
    real = Pruner.on_epoch_end

    def on_epoch_end(self: Pruner, config: RunConfig, record: EpochRecord) -> None:
        real(self, config, replace(record, dev={**record.dev, "accuracy": next(scored)}))

    monkeypatch.setattr(Pruner, "on_epoch_end", on_epoch_end)
    record = search(FEATURES, search_context, Store(tmp_path), SearchBudget(trials=5), seed=0)
    assert [trial.state for trial in record.trials] == ["complete"] * 4 + ["pruned"]
    hopeless = record.trials[4]
    assert hopeless.curve == [0.1, 0.1]  # the first epoch is never judged
    assert hopeless.score == 0.1
    assert record.best == 0
    assert not list((tmp_path / "search" / "checkpoints").iterdir())


def test_where_lower_is_better_the_lowest_score_wins(tmp_path: Path) -> None:
    context = context_of(tmp_path / "cache", "regression")
    context.settings = replace(context.settings, metric="mse")
    record = search(FEATURES, context, Store(tmp_path / "study"), SearchBudget(trials=5), seed=0)
    complete = [trial for trial in record.trials if trial.state == "complete"]
    assert record.winner.score == min(trial.score or math.inf for trial in complete)
    for trial in record.trials:
        assert trial.score in (trial.curve[-1], min(trial.curve))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (RunError("the loss became nan"), "the loss became nan"),
        (MemoryError("too much"), "MemoryError: too much"),
        (RuntimeError("CUDA out of memory"), "RuntimeError: CUDA out of memory"),
    ],
)
def test_a_failed_trial_is_told_and_does_not_end_the_search(
    fault: Exception,
    message: str,
    search_context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, trials = Run.fit, []

    def fit(self: Run, *rest: object) -> object:
        trials.append(self)
        if len(trials) == 2:
            raise fault
        return real(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "fit", fit)
    search_context = replace(search_context, progress=type(search_context.progress)())
    record = search(FEATURES, search_context, Store(tmp_path), SearchBudget(trials=3), seed=0)
    assert [trial.state for trial in record.trials] == ["complete", "failed", "complete"]
    assert (record.trials[1].score, record.trials[1].error) == (None, message)
    assert f"trial 2/3 failed: {message}" in told(search_context)


def test_a_trial_that_cannot_be_built_is_a_failed_one(
    search_context: Context, tmp_path: Path
) -> None:
    """The tiny encoder has four layers."""
    member = Candidate("last-k", {"k": 9})
    record = search(member, search_context, Store(tmp_path), SearchBudget(trials=1), seed=0)
    assert "k=9 is outside 1..4" in record.trials[0].error
    assert record.best == 0


def test_a_time_allows_the_defaults_at_least(search_context: Context, tmp_path: Path) -> None:
    record = search(TF_IDF, search_context, Store(tmp_path), SearchBudget(seconds=1e-9), seed=0)
    assert len(record.trials) == 1
    assert record.budget == {"seconds": 1e-9}
    more = search(TF_IDF, search_context, Store(tmp_path), SearchBudget(seconds=0.05), seed=0)
    assert more.trials[0] == record.trials[0]
    assert sum(trial.seconds for trial in more.trials[:-1]) < 0.05
    assert sum(trial.seconds for trial in more.trials) >= 0.05


def test_a_member_without_options_cannot_be_searched(
    search_context: Context, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="majority has no option left to search"):
        search(
            Candidate("majority"), search_context, Store(tmp_path), SearchBudget(trials=3), seed=0
        )
    assert not list(tmp_path.iterdir())


def test_a_label_may_hold_what_a_file_name_may_not(search_context: Context, tmp_path: Path) -> None:
    member = replace(TF_IDF, label="tf/idf: {50%} für ?")
    record = search(
        member, search_context, Store(tmp_path / "a {b}?"), SearchBudget(trials=1), seed=0
    )
    assert record.strategy == member.label
