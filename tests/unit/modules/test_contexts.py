import pytest
import torch
from torch import Tensor

from totune.modules.contexts import ContextMatching, apart, together
from totune.modules.tokens import Tokens

WIDTH = 8


def texts(lengths: list[int], longest: int) -> Tokens:
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return Tokens(torch.randn(len(lengths), longest, WIDTH), mask)


@pytest.mark.parametrize("longest", [(5, 3), (3, 5), (4, 4)])
def test_together_and_apart_again(longest: tuple[int, int]) -> None:
    first, second = (texts([3, 1], length) for length in longest)
    both = together(first, second)
    assert both.states.shape == (4, max(longest), WIDTH)
    assert both.lengths.tolist() == [3, 1, 3, 1]
    for given, back in zip((first, second), apart(both.states, first, second), strict=True):
        assert torch.equal(back.states, given.states)
        assert torch.equal(back.mask, given.mask)


def test_states_are_matched_whole_in_training() -> None:
    """Dropout on either side of a cosine would shrink it in training alone."""
    module = ContextMatching(WIDTH, 3, 2, dropout=0.5).train()
    given: list[Tensor] = []
    found: list[Tensor] = []
    module.context.register_forward_hook(lambda _, __, output: given.append(output))
    module.matching.register_forward_hook(
        lambda _, inputs, __: found.extend(pair[0].states for pair in inputs)
    )
    module(texts([4, 4], 4), texts([4, 4], 4))
    assert torch.equal(torch.cat(found, dim=-1), given[0][:2])


def test_forward_states_meet_forward_states_and_backward_backward() -> None:
    module = ContextMatching(WIDTH, 3, 2, dropout=0.0)
    first, second = texts([3, 1], 4), texts([2, 5], 5)
    contexts = module.context(first), module.context(second)
    ahead, back = (
        tuple(Tokens(c[..., half], t.mask) for c, t in zip(contexts, (first, second), strict=True))
        for half in (slice(0, 3), slice(3, 6))
    )
    expected = module.matching(ahead, back)
    for found, wanted in zip(module(first, second), expected, strict=True):
        assert found.states.shape[-1] == module.width == 16
        torch.testing.assert_close(found.states, wanted.states, atol=1e-6, rtol=0)
