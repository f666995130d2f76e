"""Callbacks follow runs, and their faults are not those of runs."""

import pytest
from tests.unit.runs.samples import config_of, record_of

from totune.errors import TotuneError
from totune.runs.callbacks import Callback, CallbackError, CallbackList
from totune.runs.config import RunConfig
from totune.runs.records import RunRecord
from totune.training.history import EpochRecord


class Noted(Callback):
    """Writes down its calls."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name, self.calls = name, calls

    def on_run_begin(self, config: RunConfig) -> None:
        self.calls.append(f"{self.name} {config.label} begins")

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self.calls.append(f"{self.name} {config.label} epoch {epoch.epoch}")

    def on_run_end(self, record: RunRecord) -> None:
        self.calls.append(f"{self.name} {record.strategy} ends")


class Broken(Callback):
    """Raises what a run may raise, too."""

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        raise ValueError("no such column")


def test_callbacks_are_called_in_their_order() -> None:
    calls: list[str] = []
    both, record = CallbackList(Noted("a", calls), Noted("b", calls)), record_of()
    both.on_run_begin(config_of())
    both.on_epoch_end(config_of(), record.epochs[0])
    both.on_run_end(record)
    told = ["tf-idf begins", "tf-idf epoch 1", "tf-idf ends"]
    assert calls == [f"{name} {what}" for what in told for name in "ab"]


def test_what_a_callback_raises_is_no_fault_of_the_run() -> None:
    record = record_of()
    message = r"Broken\.on_epoch_end raised ValueError: no such column"
    with pytest.raises(CallbackError, match=message) as caught:
        CallbackList(Callback(), Broken()).on_epoch_end(config_of(), record.epochs[0])
    assert isinstance(caught.value.__cause__, ValueError)
    assert not isinstance(caught.value, TotuneError | RuntimeError | ValueError | MemoryError)
