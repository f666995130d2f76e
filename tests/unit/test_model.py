"""The only forward path: from pieces and from any cached prefix alike."""

import itertools

import numpy as np
import pytest
import torch
from tests.encoder_zoo import LAYERS, batch_of, tiny_encoder
from tests.tiny_runs import TinyTask, classes

from totune.encoders.mixing import Readout, View
from totune.errors import ConfigError
from totune.features import compute
from totune.heads.linear import Linear
from totune.machine import Precision
from totune.model import Model, Viewed

POOLINGS = ("cls", "pooler", "mean", "max", "last-four")
TOP_CLS = Readout()
LAST_FOUR_MIXED = Readout("scalar-mix", "last-four")
EVERY = [Readout(*both) for both in itertools.product(("top", "scalar-mix"), POOLINGS)]
READOUTS = [readout for readout in EVERY if readout != LAST_FOUR_MIXED]


def model_of(
    readout: Readout = TOP_CLS, encoder: str = "bert", precision: Precision = "fp32"
) -> Model:
    torch.manual_seed(0)
    return Model(tiny_encoder(encoder), readout, Linear(), classes(3), precision).eval()


def freeze_through(model: Model, depth: int) -> None:
    for below in range(depth + 1):
        for _, parameter in model.encoder.block_parameters(below):
            parameter.requires_grad_(False)


@pytest.mark.parametrize("readout", READOUTS, ids=lambda r: f"{r.layers}-{r.pooling}")
def test_a_cached_prefix_gives_the_same_outputs(readout: Readout) -> None:
    model, pieces = model_of(readout), TinyTask.of("classification", rows=9).train.pieces
    for depth in (1, 2, LAYERS):
        freeze_through(model, depth)
        assert model.freeze_prefix() == depth
        view = model.view(depth)
        assert view is not None
        assert view.depths[-1] == depth
        features, indices = compute(model.encoder, pieces, view, bf16=False), np.array([3, 8, 0])
        batch = pieces.batch(indices)
        with torch.no_grad():
            cached = model(batch, Viewed(view, features.rows(indices)))
            torch.testing.assert_close(cached, model(batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("depth", [2, LAYERS])
def test_a_cached_prefix_in_bfloat16_is_near(depth: int) -> None:
    model = model_of(Readout("top", "mean"), precision="bf16")
    pieces = TinyTask.of("classification", rows=9).train.pieces
    freeze_through(model, depth)
    view = model.view(model.freeze_prefix())
    assert view is not None
    features, indices = compute(model.encoder, pieces, view, bf16=True), np.arange(9)
    batch = pieces.batch(indices)
    with torch.no_grad():
        cached = model(batch, Viewed(view, features.rows(indices)))
        assert cached.dtype == torch.float32
        torch.testing.assert_close(cached, model(batch), atol=1e-2, rtol=0)


def test_views_of_a_prefix() -> None:
    model = model_of(Readout("scalar-mix", "mean"))
    assert model.view(-1) is None
    assert model.view(0) is None  # cheaper to compute than to read
    assert model.view(2) == View((0, 1, 2))
    assert model.view(LAYERS) == View(tuple(range(LAYERS + 1)), "mean")
    assert model_of(Readout("top", "mean")).view(2) == View((2,))
    assert model_of(Readout("top", "last-four")).view(3) == View((1, 2, 3))


def test_the_frozen_prefix_has_no_dropout_and_the_rest_has() -> None:
    model = model_of()
    freeze_through(model, 2)
    model.freeze_prefix()
    model.train()
    modes = [
        {m.training for top in model.encoder.block_modules(d).values() for m in top.modules()}
        for d in range(LAYERS + 1)
    ]
    assert modes == [{False}, {False}, {False}, {True}, {True}]
    assert model.head.training
    model.requires_grad_(True)
    assert model.freeze_prefix() == -1
    model.train()
    assert all(module.training for module in model.encoder.modules())


@pytest.mark.parametrize("encoder", ["bert", "albert", "albert-one-group", "deberta-v2"])
@pytest.mark.parametrize("pooling", ["mean", "last-four"])
def test_parts_name_every_parameter_that_is_used(encoder: str, pooling: str) -> None:
    layers = "scalar-mix" if pooling == "mean" else "top"
    model = model_of(Readout(layers, pooling), encoder)  # type: ignore[arg-type]
    parts = model.parts()
    blocks = ["embeddings", *(f"layer.{d}" for d in range(1, LAYERS + 1))]
    assert list(parts) == [*blocks, "pooler", "mixing", "head"]
    assert parts["pooler"] == []
    assert bool(parts["mixing"]) == (pooling == "mean")
    unique = model.unique_parameters()
    assert len({id(p) for p in unique.values()}) == len(unique)
    pooler = model.encoder.pooler
    unread = {id(p) for p in pooler.parameters()} if pooler is not None else set()
    assert {id(p) for p in unique.values()} | unread == {id(p) for p in model.parameters()}


def test_a_pooler_that_is_read_is_a_part() -> None:
    model = model_of(Readout("top", "pooler"))
    names = [name for name, _ in model.parts()["pooler"]]
    assert names == ["pooler.0.weight", "pooler.0.bias"]
    assert len(model.unique_parameters()) == len(list(model.parameters()))


def test_a_pooler_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="this electra encoder has no pretrained pooler"):
        model_of(Readout("top", "pooler"), "electra")


def test_a_mix_of_what_is_concatenated_is_refused() -> None:
    with pytest.raises(ConfigError, match="pooling=last-four concatenates layers and mixes none"):
        model_of(LAST_FOUR_MIXED)


def test_bf16_is_for_the_encoder_alone() -> None:
    exact, rough = model_of(), model_of(precision="bf16")
    batch = batch_of([7, 3])
    seen: list[torch.dtype] = []
    rough.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].vectors[0].dtype))
    with torch.no_grad():
        outputs = rough(batch)
        assert not torch.equal(outputs, exact(batch))
        torch.testing.assert_close(outputs, exact(batch), atol=0.05, rtol=0)
    assert seen == [torch.float32]
    assert outputs.dtype == torch.float32
