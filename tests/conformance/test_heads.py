"""Every head, whatever it does: shapes, gradients, and no row depends on another."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.encoder_zoo import PADDING, WIDTH, batch_of, tiny_encoder
from tests.tiny_runs import MAX_LENGTH, TinyTask, tiny_examples, tiny_tokenizer

from totune.data.batches import Batch
from totune.encoders.mixing import Readout
from totune.errors import ConfigError
from totune.export import load_model, save_model
from totune.features import compute
from totune.heads.base import HEADS
from totune.model import Model, Viewed
from totune.registry import options_of
from totune.training.devices import Devices
from totune.training.inputs import Source, predict

LENGTHS = [9, 1, 4, 6]
# Every head as it comes, and further options of some.
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in HEADS.names()),
    *(("linear", {"layers": 2, "activation": a}) for a in ("tanh", "relu", "gelu")),
]


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


def model_with(case: tuple[str, dict[str, Any]], outputs: int = 3, seed: int = 0) -> Model:
    """The head on a tiny encoder, in eval mode; weights are spread so that a fault shows."""
    encoder = tiny_encoder("bert")
    torch.manual_seed(seed)
    head = HEADS.create(*case)
    readout = Readout(pooling="none" if head.wants == "tokens" else "mean")
    model = Model(encoder, readout, head, outputs)
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def row_of(batch: Batch, row: int) -> Batch:
    length = int(batch.attention_mask[row].sum())
    cut = {
        name: getattr(batch, name)[row : row + 1, :length]
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    return dataclasses.replace(batch, indices=np.arange(1), **cut)


def test_options_are_a_frozen_dataclass_with_defaults(case: tuple[str, dict[str, Any]]) -> None:
    head = HEADS.create(*case)
    assert type(head).__dataclass_params__.frozen
    assert all(f.default is not dataclasses.MISSING for f in dataclasses.fields(head))
    assert HEADS.create(head.name, options_of(head)) == head


@pytest.mark.parametrize("outputs", [1, 5])
def test_a_row_of_outputs_per_example(case: tuple[str, dict[str, Any]], outputs: int) -> None:
    model = model_with(case, outputs)
    for mode, lengths in itertools.product((True, False), ([7, 3, 5], [4], [1], [1, 1])):
        found = model.train(mode)(batch_of(lengths))
        assert found.shape == (len(lengths), outputs)
        assert found.dtype == torch.float32
        assert torch.isfinite(found).all()


def test_gradients_reach_every_parameter(case: tuple[str, dict[str, Any]]) -> None:
    model = model_with(case)
    outputs = model(batch_of(LENGTHS))
    (outputs * torch.randn_like(outputs)).sum().backward()
    for name, parameter in model.head.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_padding_and_batch_mates_change_no_prediction(case: tuple[str, dict[str, Any]]) -> None:
    model, batch = model_with(case), batch_of(LENGTHS)
    with torch.no_grad():
        together = model(batch)
        torch.testing.assert_close(model(batch_of(LENGTHS, 30)), together, atol=1e-5, rtol=0)
        for row in range(len(LENGTHS)):
            alone = model(row_of(batch, row))[0]
            torch.testing.assert_close(alone, together[row], atol=1e-5, rtol=0)


def test_what_padding_holds_is_not_read(case: tuple[str, dict[str, Any]]) -> None:
    model, batch = model_with(case), batch_of(LENGTHS)
    noise = torch.where(batch.input_ids == PADDING, 17, batch.input_ids)
    with torch.no_grad():
        other = model(dataclasses.replace(batch, input_ids=noise))
        torch.testing.assert_close(other, model(batch), atol=1e-5, rtol=0)


def test_different_rows_get_different_outputs(case: tuple[str, dict[str, Any]]) -> None:
    with torch.no_grad():
        outputs = model_with(case)(batch_of(LENGTHS))
    assert torch.cdist(outputs, outputs).add(torch.eye(len(LENGTHS))).min() > 1e-3


def test_equal_rows_get_equal_outputs(case: tuple[str, dict[str, Any]]) -> None:
    batch = batch_of([5])
    copies = {
        name: getattr(batch, name).repeat(4, 1)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    same = dataclasses.replace(batch, indices=np.arange(4), **copies)
    one_piece = dataclasses.replace(same, input_ids=torch.full((4, 5), 9))
    with torch.no_grad():
        for given in (same, one_piece):
            outputs = model_with(case)(given)
            torch.testing.assert_close(outputs, outputs[:1].expand(4, -1), atol=1e-6, rtol=0)


def test_the_same_seed_builds_and_predicts_the_same(case: tuple[str, dict[str, Any]]) -> None:
    batch = batch_of(LENGTHS)
    with torch.no_grad():
        model = model_with(case)
        first = model(batch)
        assert torch.equal(model(batch), first)
        assert torch.equal(model_with(case)(batch), first)
        assert not torch.equal(model_with(case, seed=1)(batch), first)


def test_dropout_is_for_training_alone(case: tuple[str, dict[str, Any]]) -> None:
    model = model_with(case)
    model.requires_grad_(False)
    model.freeze_prefix()
    model.train()
    assert not any(module.training for module in model.encoder.block_modules(3).values())
    with torch.no_grad():
        outputs = [model(batch_of(LENGTHS)) for _ in range(2)]
    assert not torch.equal(*outputs)


def test_cached_features_predict_as_the_whole_model(case: tuple[str, dict[str, Any]]) -> None:
    model, tiny = model_with(case), TinyTask.of("classification", rows=6)
    model.requires_grad_(False)
    view = model.view(model.freeze_prefix())
    assert view is not None
    indices = np.array([4, 0, 2])
    rows = compute(model.encoder, tiny.train.pieces, view, bf16=False).rows(indices)
    batch = tiny.train.pieces.batch(indices)
    with torch.no_grad():
        cached = model(batch, Viewed(view, rows))
        torch.testing.assert_close(cached, model(batch), atol=1e-5, rtol=0)


def test_saved_and_loaded_it_predicts_the_same(
    case: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    model, tiny = model_with(case), TinyTask.of("classification", rows=6)
    about = {"max_length": MAX_LENGTH, "pairs": False}
    save_model(tmp_path, model, tiny_tokenizer(), tiny.task, about)
    outputs = load_model(tmp_path).outputs(tiny_examples(rows=6))
    np.testing.assert_allclose(
        outputs, predict(model, Source(tiny.train), tiny.task, Devices()), atol=1e-6
    )


def test_a_readout_of_the_wrong_kind_is_refused(case: tuple[str, dict[str, Any]]) -> None:
    head = HEADS.create(*case)
    wrong = Readout(pooling="mean" if head.wants == "tokens" else "none")
    with pytest.raises(ConfigError, match=f"{head.name!r} reads {head.wants}"):
        Model(tiny_encoder("bert"), wrong, head, 2)


def test_options_of_the_linear_head() -> None:
    shapes = [tuple(p.shape) for p in HEADS.create("linear").build(WIDTH, 3).parameters()]
    assert shapes == [(3, WIDTH), (3,)]
    for option, value in [("dropout", 1.0), ("dropout", -0.1), ("layers", 3), ("activation", "x")]:
        with pytest.raises(ConfigError, match=rf"head linear: {option}={value!r}"):
            HEADS.create("linear", {option: value})
