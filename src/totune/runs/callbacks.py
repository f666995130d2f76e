"""Callbacks: code that follows the runs of a study, as trackers and the pruner of a search do."""

from typing import Any

from totune.runs.config import RunConfig
from totune.runs.records import RunRecord
from totune.training.history import EpochRecord


class Callback:
    """Follows every run; a subclass overrides the methods that it needs.

    A tracker that writes a line of csv per epoch:

        class EpochLog(totune.Callback):
            def __init__(self, path):
                self.path = Path(path)

            def on_epoch_end(self, config, epoch):
                with self.path.open("a") as file:
                    values = config.label, config.seed, epoch.epoch, epoch.dev["accuracy"]
                    print(*values, sep=",", file=file)

        totune.compare("reviews.csv", callbacks=[EpochLog("epochs.csv")])

    The methods are called in the process that called `compare`, wherever the runs take place, so a
    callback may keep state and needs no lock. Where several runs go on at once (`jobs`, a Ray
    cluster), their calls alternate: `config.fingerprint` says which run a call is about. The calls
    of one run keep their order.

    An exception from a callback ends the study, as a `CallbackError`. Nothing that is finished is
    lost: the same call of `compare` goes on after the last epoch.
    """

    def on_run_begin(self, config: RunConfig) -> None:
        """A run begins, or continues; called again if its process has died meanwhile.

        Args:
            config: the run: `label`, `seed`, `strategy` (name and options), `fingerprint`.
        """

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        """An epoch has ended and its checkpoint is written.

        When a run continues, the epochs before are passed on first.

        Args:
            config: the run.
            epoch: its number (`epoch`, from 1), `phase`, metrics on `train` and `dev`, `seconds`.
        """

    def on_run_end(self, record: RunRecord) -> None:
        """A run has finished or failed, and its record is written.

        Args:
            record: scores, costs and epochs; `error` is None unless it failed.
        """


class CallbackError(Exception):
    """A callback has raised, which is no fault of the run: the run is not recorded as failed."""


class CallbackList(Callback):
    """Several callbacks, called in their order.

    Raises:
        CallbackError: from what one of them has raised.
    """

    def __init__(self, *callbacks: Callback) -> None:
        self._callbacks = callbacks

    def on_run_begin(self, config: RunConfig) -> None:
        self._call("on_run_begin", config)

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self._call("on_epoch_end", config, epoch)

    def on_run_end(self, record: RunRecord) -> None:
        self._call("on_run_end", record)

    def _call(self, method: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            try:
                getattr(callback, method)(*arguments)
            except Exception as error:
                where = f"{type(callback).__name__}.{method}"
                raise CallbackError(f"{where} raised {type(error).__name__}: {error}") from error
