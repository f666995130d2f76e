"""The trials of one search, which one process asks for, or several at once.

Every trial is put into the queue before it is taken out of it, so that one which a dead process has
left can be put back with its options and its number. Two processes may at worst train one trial
both (SQLite locks no row); the numbers are the same, and the first to tell them is heard.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from threading import Event, Thread
from typing import Any

from optuna import Study, Trial
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from totune.search.budget import Budget
from totune.search.sampling import Distributions

ALIVE, OUTCOME = "alive", "outcome"  # attributes of a trial: a sign of life, and how it ended
BEAT = 10.0  # seconds between two signs of life
GRACE = 60.0  # seconds without one, after which a trial is another's to take up
POLL = 0.5  # seconds between two looks at trials that others run


class Queue:
    """Hands out trials until the budget is used up.

    Args:
        study: Optuna's.
        storage: where it is kept.
        budget: of all processes together.
        distributions: of the options.
        shared: whether other processes may search too; else a trial that runs is one which a
            dead process has left.
    """

    def __init__(
        self,
        study: Study,
        storage: RDBStorage,
        budget: Budget,
        distributions: Distributions,
        shared: bool,
    ) -> None:
        self._study, self._storage, self._budget = study, storage, budget
        self._distributions, self._shared = distributions, shared
        self._own: set[int] = set()

    def trials(self) -> list[FrozenTrial]:
        """The trials so far that belong to the search."""
        found = self._all()
        return [trial for trial in found if trial.number < self._limit(found)]

    def ask(self) -> Trial | None:
        """The next trial with its options; None when all have ended, whoever ran them."""
        while self._make_room():
            trial = self._study.ask(self._distributions)
            if trial.number < self._limit(self._all()):
                self._own.add(trial.number)
                trial.set_user_attr(ALIVE, time.time())
                return trial
            self._put_back(trial.number)  # others have used up the budget meanwhile
        return None

    def reported(self, trial: Trial) -> int:
        """How many epochs a trial was told of before it was interrupted."""
        return len(self._all()[trial.number].intermediate_values)

    def twin(self, trial: Trial) -> FrozenTrial | None:
        """The first earlier trial with the same options, if it has ended."""
        earlier = self._all()[: trial.number]
        alike = (other for other in earlier if other.params == trial.params)
        return next((other for other in alike if other.state.is_finished()), None)

    def tell(
        self, trial: Trial, state: TrialState, score: float | None, facts: dict[str, Any]
    ) -> None:
        """Ends a trial, unless somebody else has done so who took it for abandoned.

        Args:
            trial: that was asked for.
            state: how it ended.
            score: its value if it is complete; a pruned one has that of its last report.
            facts: kept with it, its `seconds` among them.
        """
        value = score if state == TrialState.COMPLETE else None
        with contextlib.suppress(UpdateFinishedTrialError, ValueError):
            trial.set_user_attr(OUTCOME, facts)
            self._study.tell(trial, value, state)

    @contextlib.contextmanager
    def running(self, trial: Trial) -> Iterator[None]:
        """Gives signs of life while the block runs; puts the trial back if it does not end."""
        try:
            with _Beating(trial) if self._shared else contextlib.nullcontext():
                yield
        except BaseException:
            with contextlib.suppress(OptunaError):
                self._put_back(trial.number)
            raise
        finally:
            self._own.discard(trial.number)

    def _make_room(self) -> bool:
        """Waits until a trial can be taken out of the queue; false when all have ended."""
        while True:
            self._put_back_abandoned()
            everything = self._all()
            limit = self._limit(everything)
            trials = everything[: int(min(limit, len(everything)))]
            if any(trial.state == TrialState.WAITING for trial in trials):
                return True
            if len(everything) < limit:
                self._study.enqueue_trial({}, user_attrs={ALIVE: time.time()})
                return True
            if all(trial.state.is_finished() for trial in trials):
                return False
            time.sleep(POLL)

    def _put_back_abandoned(self) -> None:
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for trial in running:
            silent = time.time() - trial.user_attrs.get(ALIVE, 0.0) > GRACE
            if trial.number not in self._own and (silent or not self._shared):
                self._put_back(trial.number)

    def _put_back(self, number: int) -> None:
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        with contextlib.suppress(UpdateFinishedTrialError):
            self._storage.set_trial_state_values(trial_id, TrialState.WAITING)

    def _all(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _limit(self, trials: Sequence[FrozenTrial]) -> float:
        return self._budget.covers([_seconds(trial) for trial in trials])


def _seconds(trial: FrozenTrial) -> float | None:
    """What a trial took; None while it has not ended."""
    return trial.user_attrs[OUTCOME]["seconds"] if trial.state.is_finished() else None


class _Beating:
    """Writes signs of life into a trial from a thread of its own."""

    def __init__(self, trial: Trial) -> None:
        self._trial, self._ended = trial, Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OptunaError):  # the next one may be heard again
                self._trial.set_user_attr(ALIVE, time.time())
