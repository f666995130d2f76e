import pytest
import torch

from totune.modules.tokens import Tokens, masked_softmax

LENGTHS = [3, 1, 5]
MASK = torch.arange(5) < torch.tensor(LENGTHS).unsqueeze(1)
JUNK = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30]


def tokens_with(junk: float) -> Tokens:
    torch.manual_seed(0)
    return Tokens(torch.randn(3, 5, 4).masked_fill(~MASK.unsqueeze(2), junk), MASK)


def test_lengths() -> None:
    assert tokens_with(0.0).lengths.tolist() == LENGTHS


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("reduce", ["max", "min", "mean"])
def test_reductions_read_no_padding(reduce: str, junk: float) -> None:
    tokens = tokens_with(junk)
    found = getattr(tokens, reduce)()
    rows = zip(tokens.states, LENGTHS, strict=True)
    expected = {"max": torch.amax, "min": torch.amin, "mean": torch.mean}[reduce]
    alone = torch.stack([expected(states[:length], dim=0) for states, length in rows])
    torch.testing.assert_close(found, alone)


@pytest.mark.parametrize("reduce", ["max", "min", "mean", "zeroed"])
def test_no_gradient_reaches_padding(reduce: str) -> None:
    states = tokens_with(1e30).states.requires_grad_()
    getattr(Tokens(states, MASK), reduce)().sum().backward()
    assert states.grad.isfinite().all()
    assert not states.grad[~MASK].any()
    assert states.grad[MASK].any()


@pytest.mark.parametrize("junk", JUNK)
def test_zeroed(junk: float) -> None:
    tokens = tokens_with(junk)
    assert not tokens.zeroed()[~MASK].any()
    assert torch.equal(tokens.zeroed()[MASK], tokens.states[MASK])


def test_masked_softmax_puts_all_weight_on_what_is_allowed() -> None:
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 5)
    mask = MASK[:2].unsqueeze(1)  # [2, 1, 5]
    found = masked_softmax(scores, mask)
    for row, length in enumerate(LENGTHS[:2]):
        torch.testing.assert_close(found[row, :, :length], scores[row, :, :length].softmax(-1))
        assert not found[row, :, length:].any()


def test_ties_share_the_gradient_of_the_largest_as_amax_has_it() -> None:
    torch.manual_seed(0)
    states = torch.randint(0, 2, (3, 5, 4)).double().requires_grad_()
    weights = torch.randn(3, 4, dtype=torch.float64)
    everything = torch.ones(3, 5, dtype=torch.bool)
    for name, reference in (("max", states.amax(dim=1)), ("min", states.amin(dim=1))):
        (expected,) = torch.autograd.grad((reference * weights).sum(), states)
        found = getattr(Tokens(states, everything), name)()
        (gradient,) = torch.autograd.grad((found * weights).sum(), states)
        torch.testing.assert_close(gradient, expected)
