"""Readouts: what is cached gives what the whole states give, and padding plays no part."""

import itertools
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from totune.encoders.mixing import (
    Layers,
    Mixing,
    Pooling,
    Readout,
    Reduction,
    ScalarMix,
    View,
    reduce_tokens,
)

DEPTH, WIDTH = 5, 8
EVERY = [Readout(*both) for both in itertools.product(get_args(Layers), get_args(Pooling))]
# A mix of what is concatenated is refused by the model.
READOUTS = [one for one in EVERY if one.layers == "top" or one.pooling != "last-four"]
MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]])
POOLER = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())

every = pytest.mark.parametrize("readout", READOUTS, ids=lambda r: f"{r.layers}-{r.pooling}")


def states(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Outputs of blocks 0..DEPTH, [3, 4, WIDTH] each."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 4, WIDTH, generator=generator).to(dtype) for _ in range(DEPTH + 1)]


def mixing(readout: Readout, depth: int = DEPTH) -> Mixing:
    module = Mixing(readout, depth, WIDTH)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return module


def whole(module: Mixing, layers: list[Tensor], mask: Tensor = MASK) -> Tensor:
    return module([layers[depth] for depth in module.depths], mask, POOLER)


@every
def test_the_smallest_view_is_enough(readout: Readout) -> None:
    module, layers, view = mixing(readout), states(), readout.view(DEPTH)
    assert view.depths == module.depths == readout.depths(DEPTH)
    expected = whole(module, layers)
    kept = [layers[depth] for depth in view.depths]
    if view.reduction is not None:
        kept = [reduce_tokens(layer, MASK, view.reduction) for layer in kept]
    found = module(kept, MASK, POOLER, reduced=view.reduction is not None)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert expected.shape == ((3, 4, WIDTH) if readout.pooling == "none" else (3, module.width))


@every
def test_padding_plays_no_part(readout: Readout) -> None:
    module, layers = mixing(readout), states()
    expected = whole(module, layers)
    wider = [torch.cat([layer, torch.full((3, 2, WIDTH), 1e4)], dim=1) for layer in layers]
    for layer in wider:
        layer[:, :4][MASK == 0] = -1e4
    found = whole(module, wider, torch.cat([MASK, torch.zeros(3, 2, dtype=MASK.dtype)], dim=1))
    if readout.pooling == "none":
        found, expected = found[:, :4][MASK == 1], expected[MASK == 1]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@every
def test_bfloat16_states_become_float32_vectors(readout: Readout) -> None:
    module, view = mixing(readout), readout.view(DEPTH)
    layers = states(torch.bfloat16)
    found = whole(module, layers)
    assert found.dtype == torch.float32
    if view.reduction is not None:  # the cache reduces in float32; so must the whole path
        kept = [reduce_tokens(layers[d].float(), MASK, view.reduction) for d in view.depths]
        cached = module(kept, MASK, POOLER, reduced=True)
        torch.testing.assert_close(found, cached, atol=1e-6, rtol=0)


@every
def test_gradients_reach_the_mix_and_the_states_it_reads(readout: Readout) -> None:
    module, layers = mixing(readout), [layer.requires_grad_() for layer in states()]
    output = whole(module, layers)
    (output * torch.randn_like(output)).sum().backward()
    read = [layer.grad is not None for layer in layers]
    assert read == [depth in module.depths for depth in range(DEPTH + 1)]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


def test_which_blocks_are_read() -> None:
    assert Readout("top", "mean").depths(12) == (12,)
    assert Readout("scalar-mix", "mean").depths(3) == (0, 1, 2, 3)
    for layers in get_args(Layers):
        assert Readout(layers, "last-four").depths(12) == (9, 10, 11, 12)
    assert Readout("top", "last-four").depths(2) == (0, 1, 2)


def test_views_are_pooled_where_pooling_commutes() -> None:
    reductions = {(r.layers, r.pooling): r.view(DEPTH).reduction for r in EVERY}
    plain = ("top", "mean", "scalar-mix")
    assert reductions == {
        **{(layers, "none"): None for layers in plain},
        **{(layers, "mean"): "mean" for layers in plain},
        **{(n, p): "cls" for n in plain for p in ("cls", "pooler", "last-four")},
        ("top", "max"): "max",
        ("mean", "max"): None,
        ("scalar-mix", "max"): None,
        **{("normed-scalar-mix", pooling): None for pooling in get_args(Pooling)},
    }
    assert Readout("scalar-mix", "max").view(2) == View((0, 1, 2))


def test_max_does_not_commute_with_a_mix() -> None:
    module, layers = mixing(Readout("scalar-mix", "max")), states()
    pooled = module([reduce_tokens(s, MASK, "max") for s in layers], MASK, None, reduced=True)
    assert not torch.allclose(pooled, whole(module, layers), atol=1e-3)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("cls", [[1.0], [5.0]]), ("mean", [[2.0], [5.0]]), ("max", [[3.0], [5.0]])],
)
def test_reduce_tokens(reduction: Reduction, expected: list[list[float]]) -> None:
    tokens = torch.tensor([[[1.0], [3.0], [2.0]], [[5.0], [99.0], [-99.0]]])
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    assert reduce_tokens(tokens, mask, reduction).tolist() == expected


def test_max_of_negative_states_is_not_the_padding() -> None:
    tokens = torch.tensor([[[-3.0], [-2.0], [0.0]]])
    assert reduce_tokens(tokens, torch.tensor([[1, 1, 0]]), "max").item() == -2.0


def test_a_new_mix_is_the_plain_mean() -> None:
    layers = states()
    found = ScalarMix(len(layers))(layers)
    torch.testing.assert_close(found, torch.stack(layers).mean(dim=0))


def test_the_mean_of_all_layers_learns_nothing() -> None:
    layers, module = states(), mixing(Readout("mean", "none"))
    torch.testing.assert_close(whole(module, layers), torch.stack(layers).mean(dim=0))
    assert list(module.parameters()) == []


def test_last_four_is_in_the_order_of_depth() -> None:
    layers = states()
    found = whole(mixing(Readout("top", "last-four")), layers)
    assert torch.equal(found, torch.cat([layer[:, 0] for layer in layers[2:]], dim=1))


def test_the_pooler_reads_the_first_token() -> None:
    layers = states()
    with torch.no_grad():
        found = whole(mixing(Readout("top", "pooler")), layers)
        torch.testing.assert_close(found, POOLER(layers[-1][:, 0]))


@pytest.mark.parametrize("pooling", ["none", "mean", "max", "cls"])
def test_norms_over_the_batch_make_rows_depend_on_each_other(pooling: Pooling) -> None:
    """The one documented exception among readouts; padding still plays no part."""
    readout = Readout("normed-scalar-mix", pooling)
    assert readout.reads_batch
    assert not readout.first_token_only
    module, layers = mixing(readout), states()
    together = whole(module, layers)[0]
    alone = whole(module, [layer[:1] for layer in layers], MASK[:1])[0]
    assert not torch.allclose(alone, together, atol=1e-3)
    other = [layer.masked_fill(~MASK.bool().unsqueeze(-1), 9.0) for layer in layers]
    torch.testing.assert_close(whole(module, other)[0], together, atol=1e-5, rtol=0)
