"""A search that several processes share: the budget is that of all, and the dead are replaced."""

import math
import time
from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from tests.unit.search.samples import TF_IDF, without_times

from totune.ranges import Floats
from totune.runs.context import Context
from totune.runs.store import Store
from totune.search import queue
from totune.search.queue import HEARTBEAT, SearchBudget, TrialQueue
from totune.search.search import search
from totune.search.space import SeededSampler, distribution_of
from totune.search.storage import opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shared.db"


def queue_of(url: str, kept: optuna.storages.RDBStorage, trials: int) -> TrialQueue:
    """One process's view of a search over one option."""
    study = optuna.create_study(
        storage=kept,
        sampler=SeededSampler({"x": 0.5}, 0),
        study_name="shared",
        load_if_exists=True,
    )
    distributions = {"x": distribution_of(Floats(0.0, 1.0))}
    return TrialQueue(study, kept, SearchBudget(trials=trials), distributions, shared=True)


FACTS = {"seconds": 1.0}


def test_a_shared_search_is_the_same_search(
    search_context: Context, url: str, tmp_path: Path
) -> None:
    """Whoever joins when it has ended trains nothing."""
    first = search(TF_IDF, search_context, Store(tmp_path / "a"), SearchBudget(trials=3), 0, url)
    second = search(TF_IDF, search_context, Store(tmp_path / "b"), SearchBudget(trials=3), 0, url)
    alone = search(TF_IDF, search_context, Store(tmp_path / "c"), SearchBudget(trials=3), 0)
    assert first == second
    assert without_times(first) == without_times(alone)


def test_no_two_get_the_same_trial_and_nobody_gets_more_than_the_budget(url: str) -> None:
    with opened(url) as one, opened(url) as other:
        first, second = queue_of(url, one, 3), queue_of(url, other, 3)
        trials = [first.ask(), second.ask(), first.ask()]
        assert [trial and trial.number for trial in trials] == [0, 1, 2]
        for asked, told in zip((first, second, first), trials, strict=True):
            assert told is not None
            asked.tell(told, TrialState.COMPLETE, 0.5, FACTS)
        assert first.ask() is None
        assert second.ask() is None


def test_a_trial_too_many_waits_for_a_larger_budget(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process asks between this one's look and its question."""
    with opened(url) as one, opened(url) as other:
        first, second = queue_of(url, one, 1), queue_of(url, other, 1)
        looked = TrialQueue._make_room

        def late(self: TrialQueue) -> bool:
            found = looked(self)
            monkeypatch.setattr(TrialQueue, "_make_room", looked)
            trial = second.ask()
            assert trial is not None
            assert trial.number == 0
            self._study.enqueue_trial({}, user_attrs={HEARTBEAT: time.time()})
            second.tell(trial, TrialState.COMPLETE, 0.5, FACTS)
            return found

        monkeypatch.setattr(TrialQueue, "_make_room", late)
        assert first.ask() is None
        assert [trial.state.name for trial in first._all()] == ["COMPLETE", "WAITING"]
        more = queue_of(url, one, 2).ask()
        assert more is not None
        assert more.number == 1


def test_a_trial_without_a_sign_of_life_is_taken_up_with_its_options(url: str) -> None:
    with opened(url) as one, opened(url) as other:
        dead, living = queue_of(url, one, 2), queue_of(url, other, 2)
        left = dead.ask()
        assert left is not None
        left.report(0.25, 0)
        follower = living.ask()
        assert follower is not None
        assert follower.number == 1  # while the first one may be alive
        left.set_user_attr(HEARTBEAT, time.time() - queue.GRACE - 1)
        taken = living.ask()
        assert taken is not None
        assert (taken.number, taken.params) == (0, left.params)
        assert living.reported(taken) == 1
        living.tell(taken, TrialState.COMPLETE, 0.5, FACTS)
        dead.tell(left, TrialState.COMPLETE, 0.75, FACTS)  # it was alive after all
        assert living._all()[0].value == 0.5


def test_who_runs_a_trial_gives_signs_of_life(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "HEARTBEAT_SECONDS", 0.01)
    with opened(url) as kept:
        own = queue_of(url, kept, 1)
        trial = own.ask()
        assert trial is not None
        trial.set_user_attr(HEARTBEAT, 0.0)
        with own.running(trial):
            deadline = time.time() + 30
            while own._all()[0].user_attrs[HEARTBEAT] == 0.0:
                assert time.time() < deadline
                time.sleep(0.01)


def test_a_process_waits_for_trials_that_others_run(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(url) as one, opened(url) as other:
        first, second = queue_of(url, one, 1), queue_of(url, other, 1)
        trial = first.ask()
        assert trial is not None
        waited: list[float] = []

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            first.tell(trial, TrialState.COMPLETE, 0.5, FACTS)

        monkeypatch.setattr(queue.time, "sleep", sleep)
        assert second.ask() is None
        assert len(waited) == 1


@pytest.mark.parametrize("taken", [[], [1.0] * 20, [None]])
def test_a_number_of_trials_is_that_many(taken: Sequence[float | None]) -> None:
    assert SearchBudget(trials=8).covers(taken) == 8


@pytest.mark.parametrize(
    ("taken", "count"),
    [
        ([], math.inf),
        ([100.0], 1),
        ([4.0, 4.0], math.inf),
        ([4.0, 4.0, 2.0, 5.0], 3),
        ([4.0, None, 7.0], 3),
        ([4.0, 7.0, 7.0], 2),
        ([None, None], math.inf),
    ],
)
def test_a_time_ends_with_the_trial_that_uses_it_up(
    taken: Sequence[float | None], count: float
) -> None:
    assert SearchBudget(seconds=10.0).covers(taken) == count


def test_a_budget_as_plain_data() -> None:
    assert SearchBudget(trials=3).to_json() == {"trials": 3}
    assert SearchBudget(seconds=60.0).to_json() == {"seconds": 60.0}
