import pytest
import torch
from torch import Tensor

from totune.modules.attention import (
    SelfAttentivePooling,
    attend,
    attention,
    cross_attention,
    enhance,
    enhanced_pair,
    mean_and_max,
    similarity,
)
from totune.modules.tokens import Tokens

JUNK = [1e6, float("nan"), float("inf")]


def text(lengths: list[int], seed: int, junk: float = 0.0, width: int = 4) -> Tokens:
    """Random tokens; what follows them is `junk`."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths) + 2
    mask = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    states = torch.randn(len(lengths), longest, width, generator=generator, dtype=torch.float64)
    return Tokens(states.masked_fill(~mask.unsqueeze(-1), junk), mask)


def rows(tokens: Tokens) -> list[Tensor]:
    """Each row's own tokens, [length, H]."""
    return [states[mask] for states, mask in zip(tokens.states, tokens.mask, strict=True)]


def expected_pair(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """What each token of one unpadded text finds in the other, one token at a time."""
    one = torch.stack([((b @ x).exp() / (b @ x).exp().sum()) @ b for x in a])
    other = torch.stack([((a @ x).exp() / (a @ x).exp().sum()) @ a for x in b])
    return one, other


@pytest.mark.parametrize("junk", JUNK)
def test_cross_attention_is_that_of_each_row_without_padding(junk: float) -> None:
    first, second = text([3, 1, 5], 0, junk), text([2, 4, 1], 1, junk)
    from_second, from_first = cross_attention(first, second)
    for row, (a, b) in enumerate(zip(rows(first), rows(second), strict=True)):
        one, other = expected_pair(a, b)
        torch.testing.assert_close(from_second[row, : len(a)], one)
        torch.testing.assert_close(from_first[row, : len(b)], other)


def test_weights_sum_to_one_over_the_tokens() -> None:
    first, second = text([3, 1], 0, 9.0), text([2, 4], 1, 9.0)
    weights = attention(similarity(first, second), second)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(first.mask, dtype=torch.float64))
    assert not weights.masked_select(~second.mask.unsqueeze(1)).any()


def test_one_token_gets_all_the_attention() -> None:
    first, second = text([3], 0), text([1], 1, 9.0)
    found = attend(attention(similarity(first, second), second), second)
    torch.testing.assert_close(found, second.states[:, :1].expand_as(found))


def test_huge_scores_stay_finite() -> None:
    first, second = text([3], 0), text([4], 1)
    grown = Tokens(first.states.float() * 1e4, first.mask)
    weights = attention(similarity(grown, Tokens(second.states.float(), second.mask)), second)
    assert torch.isfinite(weights).all()


def test_order_of_the_enhancement() -> None:
    tokens = Tokens(torch.tensor([[[3.0, -1.0]]]), torch.ones(1, 1, dtype=torch.bool))
    found = enhance(tokens, torch.tensor([[[2.0, 5.0]]])).states
    assert found.tolist() == [[[3, -1, 2, 5, 1, -6, 6, -5]]]


def test_the_enhanced_pair_keeps_each_texts_mask_and_order() -> None:
    first, second = text([3, 1], 0), text([2, 4], 1)
    one, other = enhanced_pair(first, second)
    assert one.mask is first.mask
    assert other.mask is second.mask
    swapped = enhanced_pair(second, first)
    torch.testing.assert_close(swapped[0].states, other.states)
    torch.testing.assert_close(swapped[1].states, one.states)


@pytest.mark.parametrize("junk", JUNK)
def test_mean_and_max_of_both_texts(junk: float) -> None:
    first, second = text([3, 1], 0, junk), text([2, 4], 1, junk)
    pooled = mean_and_max(first, second)
    for row, (a, b) in enumerate(zip(rows(first), rows(second), strict=True)):
        expected = torch.cat([a.mean(0), a.amax(0), b.mean(0), b.amax(0)])
        torch.testing.assert_close(pooled[row], expected)


@pytest.mark.parametrize("junk", JUNK)
def test_self_attentive_pooling_is_a_mean_by_learnt_scores(junk: float) -> None:
    pooling, tokens = SelfAttentivePooling(4).double(), text([3, 1, 5], 0, junk)
    pooled, weights = pooling(tokens), pooling.weights(tokens)
    for row, x in enumerate(rows(tokens)):
        expected = (x @ pooling.score.weight[0]).softmax(0)
        torch.testing.assert_close(weights[row, : len(x)], expected)
        torch.testing.assert_close(pooled[row], expected @ x)
    assert not weights[~tokens.mask].any()


def test_what_padding_holds_reaches_no_gradient() -> None:
    pooling, tokens = SelfAttentivePooling(16).double(), text([3, 1], 0, float("nan"))
    other = text([2, 4], 1, float("nan"))
    states = tokens.states.clone().requires_grad_()
    one, _ = enhanced_pair(Tokens(states, tokens.mask), other)
    pooling(one).sum().backward()
    assert torch.isfinite(pooling.score.weight.grad).all()
    assert torch.isfinite(states.grad).all()
    assert not states.grad[~tokens.mask].any()
