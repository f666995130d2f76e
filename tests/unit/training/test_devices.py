"""With one process, sharing reduces to plain calls."""

import numpy as np
import pytest
from accelerate import Accelerator, state
from tests.tiny_runs import short, tiny_model

from totune.training.devices import Devices


def test_one_process_has_everything() -> None:
    devices = Devices()
    assert (devices.rank, devices.world, devices.is_main) == (0, 1, True)
    indices = np.array([4, 2, 7])
    own, counts = devices.share(indices)
    assert own.tolist() == [4, 2, 7]
    assert counts
    values = np.ones((3, 2), dtype=np.float32)
    assert devices.total(values) is values
    devices.wait()


def test_the_model_itself_trains() -> None:
    devices = Devices()
    model, _ = tiny_model(short("fine-tuning"), "bert", 2)
    assert devices.wrap(model) is model
    assert model.encoder.device == devices.device


def test_another_trainer_in_the_process_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for shared in (state.PartialState, state.AcceleratorState, state.GradientState):
        monkeypatch.setattr(shared, "_shared_state", {})  # as in a process of its own
    Accelerator(cpu=True, mixed_precision="bf16")
    devices = Devices()
    assert (devices.world, str(devices.device)) == (1, "cpu")


def test_processes_share_a_batch_without_gaps_or_repeats() -> None:
    devices = Devices()
    devices.world = 3
    shares = []
    for devices.rank in range(3):
        own, counts = devices.share(np.arange(7))
        assert counts
        shares += own.tolist()
    assert sorted(shares) == list(range(7))
    assert not devices.is_main


def test_a_process_without_a_row_takes_part_at_weight_zero() -> None:
    devices = Devices()
    devices.world = 3
    devices.rank = 2
    own, counts = devices.share(np.array([5, 6]))
    assert (own.tolist(), counts) == ([5], False)
