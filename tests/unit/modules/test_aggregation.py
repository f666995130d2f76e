import torch

from totune.modules.aggregation import LastStates, TransformerMaxima, sinusoids
from totune.modules.tokens import Tokens

WIDTH = 8


def texts(lengths: list[int], longest: int) -> Tokens:
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return Tokens(torch.randn(len(lengths), longest, WIDTH), mask)


def test_last_states_are_where_each_direction_ends() -> None:
    first, second = texts([3, 1], 4), texts([2, 5], 5)
    module = LastStates(WIDTH, 3, dropout=0.0)
    found = module(first, second)
    assert found.shape == (2, module.width) == (2, 12)
    parts = []
    for text in (first, second):
        states = module.lstm(text)
        rows = torch.arange(2)
        parts += [states[rows, text.lengths - 1, :3], states[:, 0, 3:]]
    torch.testing.assert_close(found, torch.cat(parts, dim=-1))


def test_a_transformer_knows_the_order_of_tokens() -> None:
    torch.manual_seed(0)
    module = TransformerMaxima(WIDTH, 2, 1, dropout=0.0).eval()
    text = texts([4], 4)
    turned = Tokens(text.states.flip(1), text.mask)
    assert module.width == 2 * WIDTH
    assert (module(text, text) - module(turned, turned)).abs().max() > 1e-3


def test_sinusoids_of_known_places() -> None:
    found = sinusoids(3, 4, torch.float64)
    angles = torch.tensor([[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]], dtype=torch.float64)
    torch.testing.assert_close(found[:, 0::2], angles.sin())
    torch.testing.assert_close(found[:, 1::2], angles.cos())
