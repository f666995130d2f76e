"""Who looks on while runs go: trackers, searches that end a run early, executors that carry it."""

from totune.study.config import RunConfig
from totune.study.records import RunRecord
from totune.training.history import EpochRecord


class Watcher:
    """The one who does nothing; a subclass looks at what it needs.

    What a watcher raises ends the run, which is not recorded and can be continued.
    """

    def begun(self, config: RunConfig) -> None:
        """A run begins, or continues."""

    def epoch(self, config: RunConfig, epoch: EpochRecord) -> None:
        """An epoch has ended and its checkpoint is written; of a continued run also old ones."""

    def ended(self, record: RunRecord) -> None:
        """A run has its record."""


class Watchers(Watcher):
    """Several at once."""

    def __init__(self, *watchers: Watcher) -> None:
        self._all = watchers

    def begun(self, config: RunConfig) -> None:
        for watcher in self._all:
            watcher.begun(config)

    def epoch(self, config: RunConfig, epoch: EpochRecord) -> None:
        for watcher in self._all:
            watcher.epoch(config, epoch)

    def ended(self, record: RunRecord) -> None:
        for watcher in self._all:
            watcher.ended(record)
