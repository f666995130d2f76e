"""Callbacks: what trackers, searches and executors do while runs go on."""

from totune.runs.config import RunConfig
from totune.runs.records import RunRecord
from totune.training.history import EpochRecord


class Callback:
    """Receives every run's beginning, epochs and end; subclasses override what they need.

    What a callback raises ends the run, which is not recorded and can be continued.
    """

    def on_run_begin(self, config: RunConfig) -> None:
        """A run begins, or continues."""

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        """An epoch has ended and its checkpoint is written.

        Of a continued run, the epochs of before are passed on first.
        """

    def on_run_end(self, record: RunRecord) -> None:
        """A run has its record."""


class CallbackList(Callback):
    """Several callbacks, called in their order."""

    def __init__(self, *callbacks: Callback) -> None:
        self._callbacks = callbacks

    def on_run_begin(self, config: RunConfig) -> None:
        for callback in self._callbacks:
            callback.on_run_begin(config)

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        for callback in self._callbacks:
            callback.on_epoch_end(config, epoch)

    def on_run_end(self, record: RunRecord) -> None:
        for callback in self._callbacks:
            callback.on_run_end(record)
