"""From a stack of layers to what a head reads: choose or mix layers, pool tokens.

A `Readout` is the choice as plain data; `Mixing` is the module. Where pooling commutes with the
mix, pooled vectors are all that must be cached (`Readout.view`).
Shapes: B examples, T word pieces, D depths read, H width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Pooling = Literal["cls", "pooler", "mean", "max", "last-four", "none"]
Layers = Literal["top", "scalar-mix"]
Reduction = Literal["cls", "mean", "max"]


@dataclass(frozen=True)
class View:
    """What is read of a frozen prefix.

    Attributes:
        depths: the blocks whose outputs are read, bottom to top.
        reduction: how tokens are reduced to one vector, or None for every token's state.
    """

    depths: tuple[int, ...]
    reduction: Reduction | None = None


@dataclass(frozen=True)
class Readout:
    """How the encoder's states reach the head.

    Attributes:
        layers: the top layer, or a learned scalar mix of all (Peters et al. 2018, 2019, 3.2).
        pooling: `cls` the first token, `pooler` the pretrained pooler on it, `mean` or `max` over
            tokens, `last-four` the first token of the last four layers, concatenated (Hart, 2.1);
            `none` leaves the tokens to the head.
    """

    layers: Layers = "top"
    pooling: Pooling = "cls"

    def depths(self, depth: int) -> tuple[int, ...]:
        """The blocks that are read of an encoder of `depth` layers."""
        if self.pooling == "last-four":
            return tuple(range(max(0, depth - 3), depth + 1))
        return (depth,) if self.layers == "top" else tuple(range(depth + 1))

    @property
    def first_token_only(self) -> bool:
        """Whether nothing but the first token's states is read."""
        return self.pooling in ("cls", "pooler", "last-four")

    def view(self, depth: int) -> View:
        """The smallest view of a fully frozen encoder that this readout can be computed from.

        `cls` and `mean` are linear in the states, so they commute with a scalar mix; `max` does
        only when a single layer is read.
        """
        depths = self.depths(depth)
        if self.first_token_only:
            return View(depths, "cls")
        if self.pooling == "mean" or (self.pooling == "max" and len(depths) == 1):
            return View(depths, "mean" if self.pooling == "mean" else "max")
        return View(depths, None)


def reduce_tokens(states: Tensor, attention_mask: Tensor, reduction: Reduction) -> Tensor:
    """One vector per example from its tokens' states: [B, T, H] -> [B, H], padding excluded.

    A mean is float32 whatever the states' precision, as the cache keeps it.
    """
    if reduction == "cls":
        return states[:, 0]
    mask = attention_mask.unsqueeze(-1).bool()  # [B, T, 1]
    if reduction == "max":
        return states.masked_fill(~mask, torch.finfo(states.dtype).min).amax(dim=1)
    total = (states * mask).sum(dim=1, dtype=torch.float32)
    return total / mask.sum(dim=1)


class ScalarMix(nn.Module):
    """gamma * sum_j softmax(w)_j h_j over layers j (Peters et al. 2018, equation 1).

    Starts as the plain mean of the layers.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(count))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Mixes `count` tensors of one shape into one of that shape."""
        shares = torch.softmax(self.weights, dim=0)
        stacked = torch.stack([layer.to(shares.dtype) for layer in layers])
        mixed: Tensor = self.gamma * torch.tensordot(shares, stacked, dims=1)
        return mixed


class Mixing(nn.Module):
    """Readout as a module: layers -> one vector (or token states) per example, in float32.

    Args:
        readout: what to read.
        depth: L of the encoder.
        width: H of the encoder.
    """

    def __init__(self, readout: Readout, depth: int, width: int) -> None:
        super().__init__()
        self.readout = readout
        self.depths = readout.depths(depth)
        self.width = width * (len(self.depths) if readout.pooling == "last-four" else 1)
        mixes = readout.layers == "scalar-mix"
        self.scalar_mix = ScalarMix(len(self.depths)) if mixes else None

    def forward(
        self,
        layers: Sequence[Tensor],
        attention_mask: Tensor,
        pooler: nn.Module | None,
        reduced: bool = False,
    ) -> Tensor:
        """Pools and mixes.

        Args:
            layers: outputs of the blocks in `depths`: [B, T, H] each, or [B, H] if `reduced`.
            attention_mask: [B, T].
            pooler: the encoder's pooler, used when the readout asks for it.
            reduced: whether tokens are reduced already (a cached view).

        Returns:
            [B, H'] vectors, or [B, T, H] token states for pooling `none`.
        """
        pooling = self.readout.pooling
        if pooling == "max" and not reduced:
            return reduce_tokens(self._mix(layers), attention_mask, "max")
        if pooling != "none" and not reduced:
            reduction: Reduction = "mean" if pooling == "mean" else "cls"
            layers = [reduce_tokens(layer, attention_mask, reduction) for layer in layers]
        if pooling == "last-four":
            return torch.cat([layer.float() for layer in layers], dim=-1)
        mixed = self._mix(layers)
        if pooling == "pooler":
            assert pooler is not None, "checked when the model is built"
            vectors: Tensor = pooler(mixed)
            return vectors.float()
        return mixed

    def _mix(self, layers: Sequence[Tensor]) -> Tensor:
        if self.scalar_mix is None:
            return layers[0].float()
        mixed: Tensor = self.scalar_mix(layers)
        return mixed
