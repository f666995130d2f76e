import pytest
import torch

from totune.errors import ConfigError
from totune.heads.bcn import Bcn, biattended
from totune.modules.tokens import Tokens
from totune.registry import build
from totune.tasks.classification import Classification


def test_sizes_by_default_are_those_of_the_published_network() -> None:
    module = Bcn().build(1024, Classification(("a", "b", "c", "d", "e")))
    assert tuple(module.dense.weight.shape) == (300, 1024)
    assert module.encoder.width == module.integrator.width == 600
    shapes = [tuple(maxout.linear.weight.shape) for maxout in module.maxout]
    assert shapes == [(1200 * 4, 2400), (600 * 4, 1200), (5 * 4, 600)]


def test_a_lone_token_finds_itself() -> None:
    states = torch.randn(2, 1, 3)
    found = biattended(Tokens(states, torch.ones(2, 1, dtype=torch.bool))).states
    expected = torch.cat([states, torch.zeros_like(states), states.square()], dim=-1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("option", "value"),
    [("hidden_size", 0), ("pieces", 1), ("input_dropout", 1.0), ("dropout", -0.1)],
)
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"head bcn: {option}={value}"):
        build(Bcn, {option: value}, "head bcn")
