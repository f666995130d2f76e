"""Padding, degenerate vectors, precision; the values are in `tests/parity/test_bimpm.py`."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from totune.modules.matching import (
    BilateralMatching,
    Matching,
    attended,
    cosines,
    multi_cosine,
    multi_cosines,
)
from totune.modules.tokens import Tokens

WIDTH, PERSPECTIVES = 6, 3


def texts(lengths: list[int], longest: int, dtype: torch.dtype = torch.float64) -> Tokens:
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return Tokens(torch.randn(len(lengths), longest, WIDTH, dtype=dtype), mask)


def with_padding(tokens: Tokens, value: float, extra: int = 3) -> Tokens:
    states = tokens.states.masked_fill(~tokens.mask.unsqueeze(-1), value)
    more = torch.full((len(states), extra, WIDTH), value, dtype=states.dtype)
    missing = torch.zeros(len(states), extra, dtype=torch.bool)
    return Tokens(torch.cat([states, more], 1), torch.cat([tokens.mask, missing], 1))


@pytest.fixture(params=[True, False], ids=["forward", "backward"])
def matching(request: pytest.FixtureRequest) -> Matching:
    torch.manual_seed(0)
    return Matching(WIDTH, PERSPECTIVES, forward_in_time=request.param).double()


@given(
    lengths=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4),
    value=st.sampled_from([0.0, 1e6, -1e6, float("inf"), float("nan")]),
    forward_in_time=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_padding_and_batch_mates_change_nothing(
    lengths: list[tuple[int, int]], value: float, forward_in_time: bool
) -> None:
    torch.manual_seed(0)
    matching = Matching(WIDTH, PERSPECTIVES, forward_in_time).double()
    first, second = (texts([pair[side] for pair in lengths], 5) for side in (0, 1))
    with torch.no_grad():
        found = matching(first, second)
        padded = matching(with_padding(first, value), with_padding(second, value))
        for text, one, other in zip((first, second), found, padded, strict=True):
            assert not one[~text.mask].any()
            assert not other[:, 5:].any()
            torch.testing.assert_close(other[:, :5], one, atol=1e-12, rtol=0)
        for row, (n, m) in enumerate(lengths):
            alone = matching(
                Tokens(first.states[row : row + 1, :n], first.mask[row : row + 1, :n]),
                Tokens(second.states[row : row + 1, :m], second.mask[row : row + 1, :m]),
            )
            torch.testing.assert_close(alone[0][0], found[0][row, :n], atol=1e-12, rtol=0)
            torch.testing.assert_close(alone[1][0], found[1][row, :m], atol=1e-12, rtol=0)


def test_the_texts_change_sides_with_their_matches(matching: Matching) -> None:
    first, second = texts([4, 2], 4), texts([1, 3], 3)
    forth, back = matching(first, second), matching(second, first)
    torch.testing.assert_close(forth, back[::-1], atol=1e-12, rtol=0)


def test_a_text_of_one_token_leaves_only_its_sign_to_tell(matching: Matching) -> None:
    with torch.no_grad():
        for weights in matching.parameters():
            weights.copy_(matching.full)
    first, second = texts([4], 4), texts([1], 1)
    found, _ = matching(first, second)
    full, pooled, attentive, max_attentive = found.chunk(4, dim=-1)
    for other in (pooled, attentive, max_attentive):
        torch.testing.assert_close(other, full, atol=1e-12, rtol=0)


def test_equal_tokens_match_with_one(matching: Matching) -> None:
    states = torch.randn(WIDTH, dtype=torch.float64).expand(2, 4, WIDTH)
    equal = Tokens(states, torch.tensor([[True] * 4, [True, True, False, False]]))
    for found in matching(equal, equal):
        expected = equal.mask.unsqueeze(-1).expand_as(found).double()
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_opposite_cosines_are_kept_below_zero(matching: Matching) -> None:
    one = texts([3, 3], 3)
    one = Tokens(one.states[:, :1].expand(2, 3, WIDTH), one.mask)
    opposite = with_padding(Tokens(-one.states, one.mask), 0.0)
    full, pooled, attentive, max_attentive = matching(one, opposite)[0].chunk(4, dim=-1)
    for found in (full, pooled, attentive, max_attentive):
        torch.testing.assert_close(found, torch.full_like(found, -1.0), atol=1e-12, rtol=0)


def zero(states: Tensor) -> None:
    states.zero_()


def one_zero_token(states: Tensor) -> None:
    states[:, 1] = 0


def tiny(states: Tensor) -> None:
    states.mul_(1e-20)


def equal(states: Tensor) -> None:
    states.copy_(states[:1, :1].clone().expand_as(states))


@pytest.mark.parametrize("change", [zero, one_zero_token, tiny, equal])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_degenerate_states_have_moderate_gradients(
    matching: Matching, change: Callable[[Tensor], None], dtype: torch.dtype
) -> None:
    matching.to(dtype)
    first, second = texts([3, 2], 3, dtype), texts([2, 3], 3, dtype)
    change(first.states)
    change(second.states)
    first.states.requires_grad_()
    second.states.requires_grad_()
    found = torch.cat(matching(first, second), dim=1)
    (found * torch.randn_like(found)).sum().backward()
    assert torch.isfinite(found).all()
    grads = [first.states.grad, second.states.grad, *(p.grad for p in matching.parameters())]
    for gradient in grads:
        assert gradient is not None
        assert float(gradient.abs().max()) < 1e4


def test_gradients_are_those_of_the_function(matching: Matching) -> None:
    first, second = texts([3, 2], 3), texts([2, 3], 3)

    def run(one: Tensor, other: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        named = dict(zip(dict(matching.named_parameters()), weights, strict=True))
        pair = (Tokens(one, first.mask), Tokens(other, second.mask))
        found: tuple[Tensor, Tensor] = torch.func.functional_call(matching, named, pair)
        return found

    inputs = [first.states, second.states, *(p.detach() for p in matching.parameters())]
    assert torch.autograd.gradcheck(run, [value.clone().requires_grad_() for value in inputs])


def test_attention_whose_cosines_cancel_out_is_no_vector() -> None:
    alphas = torch.tensor([[[0.5, -0.5]]])
    assert not attended(alphas, torch.eye(2)[None]).any()


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e6])
def test_cosines_do_not_depend_on_scale_in_float32(scale: float) -> None:
    torch.manual_seed(0)
    one, other = torch.randn(2, 3, WIDTH), torch.randn(2, 4, WIDTH)
    weights = torch.randn(PERSPECTIVES, WIDTH)
    plain = torch.cosine_similarity(one.unsqueeze(2), other.unsqueeze(1), dim=-1)
    torch.testing.assert_close(cosines(scale * one, other), plain, atol=1e-6, rtol=0)
    torch.testing.assert_close(
        multi_cosines(scale * one, other, weights),
        multi_cosines(one, other, weights),
        atol=1e-6,
        rtol=0,
    )
    torch.testing.assert_close(
        multi_cosine(scale * one, other[:, :1], weights),
        multi_cosine(one, other[:, :1], weights),
        atol=1e-6,
        rtol=0,
    )


def test_autocast_does_not_reach_the_matching(matching: Matching) -> None:
    matching.float()
    first, second = texts([3, 2], 3, torch.float32), texts([2, 3], 3, torch.float32)
    plain = matching(first, second)
    with torch.autocast("cpu", torch.bfloat16):
        under = matching(first, second)
        rounded = matching(
            Tokens(first.states.bfloat16(), first.mask),
            Tokens(second.states.bfloat16(), second.mask),
        )
    for one, other, half in zip(plain, under, rounded, strict=True):
        assert torch.equal(one, other)
        assert half.dtype == torch.float32


def test_both_directions_side_by_side() -> None:
    torch.manual_seed(0)
    bilateral = BilateralMatching(WIDTH, PERSPECTIVES).double()
    ahead = (texts([4, 2], 4), texts([1, 3], 3))
    back = (texts([4, 2], 4), texts([1, 3], 3))
    assert bilateral.width == 8 * PERSPECTIVES
    parts = zip(bilateral.ahead(*ahead), bilateral.back(*back), strict=True)
    for found, text, part in zip(bilateral(ahead, back), ahead, parts, strict=True):
        assert torch.equal(found.mask, text.mask)
        assert torch.equal(found.states, torch.cat(part, dim=-1))
