"""A step that runs out of memory is computed in parts, with the gradients of the whole."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.recorder import Recorder
from tests.tiny_runs import TinyTask, assert_same_training, fit, short, tiny_model, weights

from totune.encoders.mixing import View
from totune.errors import RunError
from totune.features import FeatureCache
from totune.inputs.batches import Batch
from totune.model import Model, Viewed
from totune.strategies.phases import Constant, Epochs, Group, Phase
from totune.training.devices import Devices
from totune.training.inputs import InputSource, predict
from totune.training.micro_batches import MicroBatches
from totune.training.optimizer import apply_phase, build_optimizer, moments_to_come

ALL = Phase("all", (Group("*", 1e-4),), Constant(), Epochs(2))


class Small(Model):
    """Has room for `room` rows."""

    room = 3

    def forward(self, batch: Batch, viewed: Viewed | None = None) -> torch.Tensor:
        outputs = super().forward(batch, viewed)
        if len(batch) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return outputs


def fresh(small: bool, room: int = 3, task: TinyTask | None = None) -> Model:
    """Without dropout, which draws otherwise for other batches."""
    classes = 3 if task is None else task.task
    model, _ = tiny_model(short("fine-tuning"), "bert", classes, dropout=0.0)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    if small:
        model.__class__ = Small
        model.room = room
    return model


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_weights_are_those_of_a_run_with_room(kind: str) -> None:
    task = TinyTask.of(kind)
    whole, small, notes = fresh(False, task=task), fresh(True, task=task), Recorder()
    expected = fit(whole, [ALL], task).history
    found = fit(small, [ALL], task, progress=notes).history
    assert_same_training(small, whole)
    for epoch, same in zip(found.epochs, expected.epochs, strict=True):
        assert epoch.train == pytest.approx(same.train, abs=1e-6)
        assert epoch.dev == pytest.approx(same.dev, abs=1e-6)
    assert 1 <= len(notes.said) <= 2  # a short batch may need fewer parts than a later one


def test_gradients_add_up_and_it_is_told_once(tiny: TinyTask) -> None:
    whole, small, notes = fresh(False), fresh(True), Recorder()
    units = np.arange(11)
    for model in (whole, small):
        model.train()
        cutting = MicroBatches(model, Devices(), notes)
        parts = cutting.backward(model, InputSource(tiny.train, tiny.train.units), units, 1 / 11)
        assert np.array_equal(np.concatenate([part.units for part in parts]), units)
    assert (len(parts), cutting.parts) == (4, 4)
    for name, parameter in whole.named_parameters():
        if parameter.grad is not None:
            found = small.get_parameter(name).grad
            torch.testing.assert_close(found, parameter.grad, atol=1e-7, rtol=1e-5)
    cutting.backward(small, InputSource(tiny.train, tiny.train.units), units, 1 / 11)
    lengths = tiny.train.units.lengths
    assert notes.said == [
        f"A step with 11 rows of {lengths[:11].max()} word pieces at once does not fit into "
        "memory: from here on a step is computed in 4 parts (of 3 rows of "
        f"{lengths[:3].max()} word pieces here) and learns from as many rows as before."
    ]


def test_a_single_row_that_does_not_fit_ends_the_run(tiny: TinyTask) -> None:
    with pytest.raises(RunError, match=r"a single row of \d+ word pieces does not fit"):
        fit(fresh(True, room=0), [ALL], tiny)


def test_evaluation_and_features_are_halved_too(tiny: TinyTask, tmp_path: Path) -> None:
    whole, small = fresh(False), fresh(True)
    sources = InputSource(tiny.train, tiny.train.units), Devices()
    expected, found = predict(whole, *sources), predict(small, *sources)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    np.testing.assert_allclose(found.losses, expected.losses, atol=1e-6)

    view, notes, filled = View((1,), "mean"), Recorder(), []
    encode = type(small.encoder).encode
    for room, folder in ((100, "whole"), (3, "small")):
        encoder = fresh(False).encoder

        def limited(batch: Batch, start=None, stop=None, own=encoder, room=room):
            if len(batch) > room:
                raise torch.OutOfMemoryError
            return encode(own, batch, start, stop)

        encoder.encode = limited
        cache = FeatureCache(tmp_path / folder, budget_bytes=10**8, progress=notes)
        features = cache.features(encoder, tiny.train.pieces, view, "fp32")
        assert features is not None
        filled.append(features.rows(np.arange(20)))
    torch.testing.assert_close(filled[1], filled[0], atol=1e-5, rtol=0)
    assert sum("batches are halved" in said for said in notes.said) == 3  # 20, 10, 5 rows


def test_a_run_that_continues_knows_its_parts(tiny: TinyTask, tmp_path: Path) -> None:
    path, notes = tmp_path / "checkpoint.pt", Recorder()
    fit(fresh(True), [ALL], tiny, checkpoint=path)
    again = fit(fresh(True), [dataclasses.replace(ALL)], tiny, checkpoint=path, progress=notes)
    assert again._micro_batches.parts == 4
    assert notes.said == ["continuing after epoch 2"]


@pytest.mark.parametrize(("room", "others"), [(3, 1), (100, 4)])
def test_processes_take_the_largest_number_of_parts(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch, room: int, others: int
) -> None:
    """Tried before the phase, since in a step they wait for each other."""
    model, devices, notes = fresh(True, room), Devices(), Recorder()
    monkeypatch.setattr(devices, "world", 2)
    monkeypatch.setattr(devices, "tell_all", lambda value: [value, others])
    optimizer = build_optimizer(apply_phase(model, ALL))
    assert sum(t.numel() for t in moments_to_come(optimizer)) == 2 * sum(
        p.numel() for p in model.unique_parameters().values()
    )
    before, random = weights(model), torch.get_rng_state()
    cutting = MicroBatches(model, devices, notes)
    cutting.agree(InputSource(tiny.train, tiny.train.units), 16, None, optimizer)
    assert cutting.parts == 4
    assert len(notes.said) == 1
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    assert all(p.grad is None for p in model.parameters())
    assert optimizer.state == {}


def test_all_processes_hear_that_a_row_does_not_fit(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, devices = fresh(False), Devices()
    monkeypatch.setattr(devices, "world", 2)
    monkeypatch.setattr(devices, "tell_all", lambda value: [value, 0])
    optimizer = build_optimizer(apply_phase(model, ALL))
    cutting = MicroBatches(model, devices, Recorder())
    with pytest.raises(RunError, match="a single row of"):
        cutting.agree(InputSource(tiny.train, tiny.train.units), 8, None, optimizer)


def test_in_a_step_of_several_processes_all_end(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, devices = fresh(True), Devices()
    monkeypatch.setattr(devices, "world", 2)
    cutting, source = (
        MicroBatches(model, devices, Recorder()),
        InputSource(tiny.train, tiny.train.units),
    )
    with pytest.raises(SystemExit):
        cutting.backward(model, source, np.arange(8), 1.0)
    told = capsys.readouterr().err
    assert "process 0 ran out of memory with 8 rows of" in told
    assert "smaller per_device_train_batch_size" in told
