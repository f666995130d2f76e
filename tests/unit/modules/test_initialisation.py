import math

import pytest
import torch
from torch import nn

from totune.modules.initialisation import kaiming_


@pytest.mark.parametrize(
    ("layer", "name", "fan_in"),
    [
        (nn.Linear(400, 300), "weight", 400),
        (nn.Conv1d(100, 300, 3), "weight", 300),
        (nn.LSTM(100, 120), "weight_ih_l0", 100),
        (nn.LSTM(100, 120), "weight_hh_l0", 120),
    ],
)
def test_scale_of_weights(layer: nn.Module, name: str, fan_in: int) -> None:
    torch.manual_seed(0)
    kaiming_(layer)
    weights = getattr(layer, name)
    assert float(weights.detach().std()) == pytest.approx(math.sqrt(2 / fan_in), rel=0.02)
    assert abs(float(weights.detach().mean())) < 0.01
    biases = [p for key, p in layer.named_parameters() if "bias" in key]
    assert biases
    assert all(not p.any() for p in biases)


def test_norms_keep_their_scale_of_one() -> None:
    norm = nn.LayerNorm(5)
    with torch.no_grad():
        norm.bias.fill_(3.0)
    kaiming_(norm)
    assert torch.equal(norm.weight, torch.ones(5))
    assert not norm.bias.any()
