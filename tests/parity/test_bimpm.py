"""Against `oracles/bimpm.npz` (float64).

`full`, `full_single`, `cosine_max` and `maxpool_max` are AllenNLP 2.10.1's; the others are loops
written from the equations of Wang, Hamza and Florian 2017. Contexts hold junk on padding. The
peer's `cosine_mean` and `maxpool_mean` are not in the paper and have no counterpart here.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from totune.modules.matching import Matching, attended, cosines, most_similar
from totune.modules.tokens import Tokens

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "bimpm.npz").items()
}
WEIGHTS = {
    "full": "full",
    "max_pooling": "maxpool",
    "attentive": "attentive",
    "max_attentive": "max_attentive",
}
ARRAYS = ("full", "maxpool_max", "attentive", "max_attentive")  # in the order of the module


@pytest.fixture(params=["forward", "backward"])
def context(request: pytest.FixtureRequest) -> str:
    return request.param


def sides(context: str) -> tuple[Tokens, Tokens]:
    first, second = (
        Tokens(ORACLE[f"context_{side}_{context}"], ORACLE[f"mask_{side}"]) for side in (1, 2)
    )
    return first, second


def matched(context: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    matching = Matching(6, 4, forward_in_time=context == "forward").to(dtype)
    with torch.no_grad():
        for name, array in WEIGHTS.items():
            getattr(matching, name).copy_(ORACLE[f"w_{array}_{context}"])
        first, second = (Tokens(t.states.to(dtype), t.mask) for t in sides(context))
        found: tuple[Tensor, Tensor] = matching(first, second)
        return found


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("side", [1, 2])
def test_the_four_matchings(context: str, side: int, dtype: torch.dtype, atol: float) -> None:
    parts = matched(context, dtype)[side - 1].chunk(4, dim=-1)
    for name, part in zip(ARRAYS, parts, strict=True):
        expected = ORACLE[f"{name}_{side}_{context}"].to(dtype)
        torch.testing.assert_close(part, expected, atol=atol, rtol=0, msg=lambda m, n=name: n + m)


@pytest.mark.parametrize("side", [1, 2])
def test_what_the_matchings_are_made_of(context: str, side: int) -> None:
    one, other = sides(context) if side == 1 else sides(context)[::-1]
    found = {name: ORACLE[f"{name}_{side}_{context}"] for name in ("cosine", "cosine_sum")}
    alphas = cosines(one.zeroed(), other.zeroed())
    torch.testing.assert_close(alphas, found["cosine"], atol=1e-10, rtol=0)
    torch.testing.assert_close(alphas.sum(-1), found["cosine_sum"], atol=1e-10, rtol=0)

    means = ORACLE[f"attentive_mean_vector_{side}_{context}"]
    scaled = means * found["cosine_sum"].abs().unsqueeze(-1)
    torch.testing.assert_close(attended(alphas, other.zeroed()), scaled, atol=1e-10, rtol=0)
    assert (found["cosine_sum"] < 0).any(), "the trap of negative sums is not in the oracle"

    places = most_similar(alphas, other).masked_fill(~one.mask, -1)
    assert torch.equal(places, ORACLE[f"max_attentive_index_{side}_{context}"])

    largest = alphas.masked_fill(~other.mask.unsqueeze(1), -2).amax(-1).masked_fill(~one.mask, 0)
    expected = ORACLE[f"cosine_max_{side}_{context}"].squeeze(-1)
    torch.testing.assert_close(largest, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("side", [1, 2])
def test_one_perspective_of_equal_weights_is_the_cosine(context: str, side: int) -> None:
    matching = Matching(6, 1, forward_in_time=context == "forward").double()
    with torch.no_grad():
        matching.full.fill_(0.3)
        full = matching(*sides(context))[side - 1][..., :1]
    torch.testing.assert_close(full, ORACLE[f"full_single_{side}_{context}"], atol=1e-10, rtol=0)
