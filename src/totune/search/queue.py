"""The trials of one search, which one process asks for, or several at once.

Every trial is put into the queue before it is taken out of it, so that one which a dead process has
left can be put back with its options and its number. Two processes may at worst train one trial
both (SQLite locks no row); the numbers are the same, and those of the first to end are kept.

Optuna's own heartbeat and retry (`RDBStorage(heartbeat_interval=...)` with
`RetryHeartbeatStaleTrialCallback`) promise less. Tried with Optuna 5.0 and processes that were
killed: a trial whose process dies between being asked for and its first heartbeat runs for ever;
one whose rescuer dies between failing it and adding its copy is lost; the copy has another number,
so what is tried next depends on who died when, and each counts as one of the trials; and a process
that was only slow finds its trial failed. In a study's own file, a dead process's trial would
further have to wait for a grace period, where a lock shows at once that its holder is gone.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

HEARTBEAT, RESULT = "alive", "outcome"  # attributes of a trial: a time, and how it ended
HEARTBEAT_SECONDS = 10.0  # between two heartbeats
GRACE = 60.0  # seconds without a heartbeat, after which another process takes up a trial
POLL_SECONDS = 0.5  # between two queries while other processes run trials


@dataclass(frozen=True)
class SearchBudget:
    """What the search of one strategy may take: so many trials, or so many seconds.

    Attributes:
        trials: how many; the first has the defaults.
        seconds: of training, over all trials and whoever ran them, frozen features apart. No trial
            starts after them, except the first.
    """

    trials: int | None = None
    seconds: float | None = None

    def covers(self, taken: Sequence[float | None]) -> float:
        """How many trials belong to the search; infinitely many while time is left.

        Args:
            taken: the seconds of each trial so far, in the order of asking; None while it runs.
        """
        if self.trials is not None:
            return self.trials
        assert self.seconds is not None, "a budget is of one kind or the other"
        used = 0.0
        for count, seconds in enumerate(taken, start=1):
            used += seconds or 0.0
            if used >= self.seconds:
                return count
        return math.inf

    def to_json(self) -> dict[str, float]:
        facts = {"trials": self.trials, "seconds": self.seconds}
        return {name: value for name, value in facts.items() if value is not None}


class TrialQueue:
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
        budget: SearchBudget,
        distributions: dict[str, BaseDistribution],
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
                trial.set_user_attr(HEARTBEAT, time.time())
                return trial
            self._put_back(trial.number)  # others have used up the budget meanwhile
        return None

    def reported(self, trial: Trial) -> int:
        """How many epochs of a trial were reported before it was interrupted."""
        return len(self._all()[trial.number].intermediate_values)

    def twin(self, trial: Trial) -> FrozenTrial | None:
        """The first earlier trial with the same options, if it has ended."""
        earlier = self._all()[: trial.number]
        alike = (other for other in earlier if other.params == trial.params)
        return next((other for other in alike if other.state.is_finished()), None)

    def tell(
        self, trial: Trial, state: TrialState, score: float | None, facts: dict[str, Any]
    ) -> None:
        """Ends a trial, unless another process has done so that took it for abandoned.

        Args:
            trial: that was asked for.
            state: how it ended.
            score: its value if it is complete; a pruned one has that of its last report.
            facts: kept with it, its `seconds` among them.
        """
        value = score if state == TrialState.COMPLETE else None
        with contextlib.suppress(UpdateFinishedTrialError, ValueError):
            trial.set_user_attr(RESULT, facts)
            self._study.tell(trial, value, state)

    @contextlib.contextmanager
    def running(self, trial: Trial) -> Iterator[None]:
        """Sends heartbeats while the block runs; puts the trial back if it does not end."""
        try:
            with _heartbeats(trial) if self._shared else contextlib.nullcontext():
                yield
        except BaseException:
            with contextlib.suppress(OptunaError):
                self._put_back(trial.number)
            raise
        finally:
            self._own.discard(trial.number)

    def _make_room(self) -> bool:
        """Waits until a trial can be taken out of the queue; False when all have ended."""
        while True:
            self._put_back_abandoned()
            everything = self._all()
            limit = self._limit(everything)
            trials = everything[: int(min(limit, len(everything)))]
            if any(trial.state == TrialState.WAITING for trial in trials):
                return True
            if len(everything) < limit:
                self._study.enqueue_trial({}, user_attrs={HEARTBEAT: time.time()})
                return True
            if all(trial.state.is_finished() for trial in trials):
                return False
            time.sleep(POLL_SECONDS)

    def _put_back_abandoned(self) -> None:
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for trial in running:
            silent = time.time() - trial.user_attrs.get(HEARTBEAT, 0.0) > GRACE
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
    """Wall time of a trial; None while it has not ended."""
    return trial.user_attrs[RESULT]["seconds"] if trial.state.is_finished() else None


@contextlib.contextmanager
def _heartbeats(trial: Trial) -> Iterator[None]:
    """Writes the time into a trial again and again, from a thread of its own."""
    ended = Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(OptunaError):  # the next one may arrive again
                trial.set_user_attr(HEARTBEAT, time.time())

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
