"""From what was found about each token of two texts to one vector per pair, and to outputs.

Shapes: B pairs, T tokens, H width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from totune.modules.contexts import together
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens


class LastStates(nn.Module):
    """The four states in which a BiLSTM over either text ends (BiMPM's aggregation layer).

    Args:
        input_size: H.
        hidden_size: of each direction.
        dropout: on the input.

    Attributes:
        width: of the result, 4 * hidden_size.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = BiLstm(input_size, hidden_size)
        self.width = 4 * hidden_size

    def forward(self, first: Tokens, second: Tokens) -> Tensor:
        """[B, T1, H] and [B, T2, H] -> [B, 4 * hidden_size].

        A direction ends at the last token going forward and at the first going backward.
        """
        both = together(first, second)
        states = self.lstm(Tokens(self.dropout(both.states), both.mask))
        ahead, back = states.chunk(2, dim=-1)  # [2B, T, hidden] each
        rows = torch.arange(len(ahead), device=ahead.device)
        ends = torch.cat([ahead[rows, both.lengths - 1], back[:, 0]], dim=-1)  # [2B, 2 * hidden]
        return torch.cat(ends.chunk(2), dim=-1)


class TransformerLayer(nn.Module):
    """Self-attention and a ReLU layer, each added to what it reads after a layer norm (pre-norm).

    Dropout is on what is added (Vaswani et al. 2017, section 5.4); none inside, where drawing it
    takes as long as the attention.
    """

    def __init__(self, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)  # queries, keys, values
        self.merge = nn.Linear(width, width)
        self.inner_norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """[N, T, H] and its mask [N, T] -> [N, T, H]."""
        states = states + self.dropout(self._attend(self.attention_norm(states), mask))
        added: Tensor = self.dropout(self.inner(self.inner_norm(states)))
        return states + added

    def _attend(self, states: Tensor, mask: Tensor) -> Tensor:
        heads = self.project(states).unflatten(-1, (3, self.num_heads, -1))  # [N, T, 3, heads, h]
        queries, keys, values = heads.transpose(1, 3).unbind(2)  # [N, heads, T, h] each
        found = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask[:, None, None]
        )
        merged: Tensor = self.merge(found.transpose(1, 2).flatten(2))
        return merged


class TransformerMaxima(nn.Module):
    """A transformer over either text and the maxima over its tokens.

    A linear layer comes first: matches of a token rise and fall together, which layer norms would
    take away if they saw them as they are. Pre-norm layers need no warm-up of their own; sinusoids
    (Vaswani et al. 2017, section 3.5) encode a token's position.

    Args:
        width: H, even and a multiple of `num_heads`.
        num_heads: of attention.
        num_layers: each with an inner layer of 4 * H.
        dropout: on what a layer adds.

    Attributes:
        width: of the result, 2 * H.
    """

    def __init__(self, width: int, num_heads: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.width = 2 * width
        self.embed = nn.Linear(width, width)
        self.layers = nn.ModuleList(
            TransformerLayer(width, num_heads, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, first: Tokens, second: Tokens) -> Tensor:
        """[B, T1, H] and [B, T2, H] -> [B, 2H]."""
        both = together(first, second)
        states = self.embed(both.zeroed())
        places = sinusoids(states.shape[1], states.shape[2], states.dtype)
        states = states + places.to(states.device)
        for layer in self.layers:
            states = layer(states, both.mask)
        maxima = Tokens(self.norm(states), both.mask).max()  # [2B, H]
        return torch.cat(maxima.chunk(2), dim=-1)


class FeedForward(nn.Module):
    """Two fully connected layers with a ReLU between, dropout before each."""

    def __init__(self, width: int, hidden_size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, hidden_size)
        self.out = nn.Linear(hidden_size, outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, width] -> [B, outputs]."""
        hidden = self.dropout(torch.relu(self.dense(self.dropout(vectors))))
        outputs: Tensor = self.out(hidden)
        return outputs


def sinusoids(length: int, width: int, dtype: torch.dtype) -> Tensor:
    """Sine and cosine of position / 10000^(2i / width) in features 2i and 2i + 1, [length, width].

    `width` is even.
    """
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    rates = torch.exp(steps * (-math.log(10000.0) / width))  # [width / 2]
    angles = torch.arange(length).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(dtype)
