import pytest
import torch
from torch import Tensor

from totune.errors import ConfigError
from totune.heads.base import States
from totune.heads.esim import Esim, EsimModule
from totune.modules.tokens import Tokens
from totune.registry import build
from totune.tasks.regression import Regression

SCORE = Regression(0.0, 5.0)


def esim(width: int = 6, hidden_size: int = 4) -> EsimModule:
    return Esim(hidden_size=hidden_size).build(width, SCORE)


def text(width: int = 6) -> Tokens:
    return Tokens(torch.randn(2, 3, width), torch.ones(2, 3, dtype=torch.bool))


def test_sizes_by_default_are_the_papers() -> None:
    module = Esim().build(384, SCORE)
    assert tuple(module.projection.weight.shape) == (300, 2400)
    assert tuple(module.dense.weight.shape) == (300, 2400)
    assert tuple(module.out.weight.shape) == (1, 300)
    assert module.encoder.width == module.inference.width == 600


def test_weights_start_as_said() -> None:
    module = esim()
    for lstm in (*module.encoder.ahead, *module.inference.back):
        for gate in lstm.weight_hh_l0.chunk(4):
            torch.testing.assert_close(gate @ gate.T, torch.eye(4), atol=1e-5, rtol=0)
        assert not lstm.bias_ih_l0.any()
        assert lstm.bias_hh_l0.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    assert not module.dense.bias.any()
    assert module.out.weight.abs().max() <= (6 / (4 + 1)) ** 0.5


def test_both_texts_go_through_the_same_weights() -> None:
    module, same = esim().eval(), text()
    seen: list[Tensor] = []
    module.dense.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    module(States(tokens=(same, same)))
    first, second = seen[0].chunk(2, dim=-1)
    torch.testing.assert_close(first, second)


def test_dropout_takes_the_same_features_from_all_tokens_of_a_text() -> None:
    module = esim(width=64).train()
    seen: list[Tensor] = []
    module.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].states))
    module(States(tokens=(text(64), text(64))))
    for states in seen:
        dropped = states == 0  # [B, T, H]
        assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
        assert 0.2 < dropped.float().mean() < 0.8
        assert not torch.equal(dropped[0], dropped[1])


@pytest.mark.parametrize(("option", "value"), [("hidden_size", 0), ("dropout", 1.0)])
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"head esim: {option}={value}"):
        build(Esim, {option: value}, "head esim")
