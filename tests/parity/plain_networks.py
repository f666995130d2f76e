"""Plain per-example, per-step networks in float64, read off the equations.

No padding, no batches: states of one text are [T, H].
"""

import math

import torch
from torch import Tensor, nn

from totune.modules.recurrent import BiLstm


def linear(layer: nn.Linear, vector: Tensor) -> Tensor:
    return layer.weight @ vector + layer.bias


def layer_norm(layer: nn.LayerNorm, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * layer.weight + layer.bias


def lstm(weights: nn.LSTM, states: Tensor) -> list[Tensor]:
    hidden = cell = torch.zeros(weights.hidden_size, dtype=states.dtype)
    outputs = []
    for state in states:
        gates = weights.weight_ih_l0 @ state + weights.bias_ih_l0
        gates = gates + weights.weight_hh_l0 @ hidden + weights.bias_hh_l0
        enter, forget, new, leave = gates.chunk(4)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        outputs.append(hidden)
    return outputs


def bilstm(network: BiLstm, states: Tensor) -> tuple[Tensor, Tensor]:
    """Forward and backward states of a one-layer network."""
    ahead = lstm(network.ahead[0], states)
    back = lstm(network.back[0], states.flip(0))
    return torch.stack(ahead), torch.stack(back[::-1])


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return (u @ v) / (u.norm() * v.norm())


def perspectives(u: Tensor, v: Tensor, weights: Tensor) -> Tensor:
    return torch.stack([cosine(w * u, w * v) for w in weights])


def matches(module: nn.Module, text: Tensor, other: Tensor, final: int) -> Tensor:
    """The four matchings of every token of a text with the other text, [T, 4K]."""
    rows = []
    for token in text:
        alphas = torch.stack([cosine(token, q) for q in other])
        pooled = torch.stack([perspectives(token, q, module.max_pooling) for q in other])
        mean = (alphas.unsqueeze(1) * other).sum(0) / alphas.sum()
        parts = [
            perspectives(token, other[final], module.full),
            pooled.max(dim=0).values,
            perspectives(token, mean, module.attentive),
            perspectives(token, other[int(alphas.argmax())], module.max_attentive),
        ]
        rows.append(torch.cat(parts))
    return torch.stack(rows)


def both_matches(
    module: nn.Module, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
) -> list[Tensor]:
    """Matches of either text from its forward and backward contexts, two of [T, 8K]."""
    return [
        torch.cat(
            [
                matches(module.ahead, text[0], other[0], -1),
                matches(module.back, text[1], other[1], 0),
            ],
            dim=1,
        )
        for text, other in ((first, second), (second, first))
    ]


def last_states(network: BiLstm, texts: list[Tensor]) -> Tensor:
    ends = []
    for text in texts:
        ahead, back = bilstm(network, text)
        ends += [ahead[-1], back[0]]
    return torch.cat(ends)


def feed_forward(module: nn.Module, vector: Tensor) -> Tensor:
    return linear(module.out, linear(module.dense, vector).clamp_min(0))


def position(place: int, width: int) -> Tensor:
    values = []
    for i in range(width // 2):
        angle = place / 10000 ** (2 * i / width)
        values += [math.sin(angle), math.cos(angle)]
    return torch.tensor(values, dtype=torch.float64)


def attention(layer: nn.Module, states: list[Tensor]) -> list[Tensor]:
    """Multi-head self-attention, query by query and head by head."""
    width = len(states[0])
    size = width // layer.num_heads
    projected = [linear(layer.project, state) for state in states]
    outputs = []
    for asking in projected:
        heads = []
        for head in range(layer.num_heads):
            part = slice(head * size, (head + 1) * size)
            query = asking[:width][part]
            keys = [p[width : 2 * width][part] for p in projected]
            values = [p[2 * width :][part] for p in projected]
            scores = torch.stack([query @ key for key in keys]) / math.sqrt(size)
            weights = scores.exp() / scores.exp().sum()
            heads.append(sum(w * value for w, value in zip(weights, values, strict=True)))
        outputs.append(linear(layer.merge, torch.cat(heads)))
    return outputs


def transformer_maxima(module: nn.Module, texts: list[Tensor]) -> Tensor:
    maxima = []
    for text in texts:
        states = [linear(module.embed, m) + position(t, len(m)) for t, m in enumerate(text)]
        for layer in module.layers:
            found = attention(layer, [layer_norm(layer.attention_norm, s) for s in states])
            states = [s + f for s, f in zip(states, found, strict=True)]
            for t, state in enumerate(states):
                inner = linear(layer.inner[0], layer_norm(layer.inner_norm, state)).clamp_min(0)
                states[t] = state + linear(layer.inner[2], inner)
        maxima.append(torch.stack([layer_norm(module.norm, s) for s in states]).amax(0))
    return torch.cat(maxima)


def convolution(module: nn.Module, states: Tensor) -> Tensor:
    """norm -> ReLU -> convolution with nothing beyond the ends, added to the input."""
    read = [layer_norm(module.norm, s).clamp_min(0) for s in states]
    filters = module.convolution
    reach = filters.kernel_size[0] // 2
    outputs = []
    for t, state in enumerate(states):
        found = filters.bias
        for offset in range(-reach, reach + 1):
            if 0 <= t + offset < len(read):
                found = found + filters.weight[:, :, offset + reach] @ read[t + offset]
        outputs.append(state + found)
    return torch.stack(outputs)
