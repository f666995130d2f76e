"""An ELMo layer without clips through PyTorch's LSTM kernel, which is cuDNN's on a GPU.

On a processor `ElmoLayer` itself takes less time.
"""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from totune.encoders.elmo.lstm import ElmoLayer


def kernel_layer(layer: ElmoLayer, tokens: Tensor, sizes: Sequence[int]) -> Tensor:
    """What a layer without clips makes of tokens [2, N, P], from a state of zeros, [2, N, P].

    Args:
        layer: its weights.
        tokens: in the order of `Steps`.
        sizes: sequences that still run at each step.
    """
    steps = torch.tensor(sizes)
    with torch.autocast(tokens.device.type, enabled=False):
        given = tokens.to(layer.bias.dtype)
        outputs = torch.stack([_direction(layer, way, given[way], steps) for way in (0, 1)])
    return outputs + tokens if layer.residual else outputs


def _direction(layer: ElmoLayer, way: int, tokens: Tensor, sizes: Tensor) -> Tensor:
    """One direction, [N, P] -> [N, P]."""
    size, cells = layer.projection_weight.shape[1:]
    rows = int(sizes[0])
    weights = [
        layer.input_weight[way],
        layer.hidden_weight[way],
        layer.bias[way],
        torch.zeros_like(layer.bias[way]),  # the kernel has two biases
        layer.projection_weight[way],
    ]
    start = (tokens.new_zeros(1, rows, size), tokens.new_zeros(1, rows, cells))
    with warnings.catch_warnings():
        # Weights of two directions in one tensor are not laid out as cuDNN has them: it copies.
        warnings.filterwarnings("ignore", message="RNN module weights")
        found: Tensor = torch.lstm(tokens, sizes, start, weights, True, 1, 0.0, True, False)[0]
    return found
