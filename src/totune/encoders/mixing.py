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
Layers = Literal["top", "mean", "scalar-mix", "normed-scalar-mix"]
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
        layers: the top layer, the mean of all, or a learned scalar mix of all (Peters et al. 2018,
            2019, 3.2), plain or of layers that are normed over the batch.
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
        return self.pooling in ("cls", "pooler", "last-four") and not self.reads_batch

    @property
    def reads_batch(self) -> bool:
        """Whether what a row gives depends on the rows that share its batch."""
        return self.layers == "normed-scalar-mix"

    def view(self, depth: int) -> View:
        """The smallest view of a fully frozen encoder that this readout can be computed from.

        `cls` and `mean` are linear in the states, so they commute with a scalar mix; `max` does
        only when a single layer is read.
        """
        depths = self.depths(depth)
        if self.reads_batch:
            return View(depths, None)
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

    Args:
        count: how many layers.
        normed: whether each layer is normed first, "which can help" (there, section 3.2).
    """

    def __init__(self, count: int, normed: bool = False) -> None:
        super().__init__()
        self.normed = normed
        self.weights = nn.Parameter(torch.zeros(count))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Tensor], attention_mask: Tensor | None = None) -> Tensor:
        """Mixes `count` tensors of one shape into one of that shape.

        Args:
            layers: [..., H] each; [B, T, H] if normed.
            attention_mask: [B, T]; needed if normed.
        """
        shares = torch.softmax(self.weights, dim=0)
        wide = [layer.to(shares.dtype) for layer in layers]
        if self.normed:
            assert attention_mask is not None, "norms are taken over the tokens alone"
            wide = [batch_norm(layer, attention_mask) for layer in wide]
        stacked = torch.stack(wide)
        mixed: Tensor = self.gamma * torch.tensordot(shares, stacked, dims=1)
        return mixed


def batch_norm(states: Tensor, attention_mask: Tensor) -> Tensor:
    """States [B, T, H] less their mean, over their deviation: one pair of numbers for the batch.

    Both are taken over all tokens of the batch and all features together, as in the layer norm of
    ELMo's released code; so a row's states depend on the rows beside it, and of several processes
    each norms its own rows.
    """
    mask = attention_mask.unsqueeze(-1).to(states.dtype)  # [B, T, 1]
    count = mask.sum() * states.shape[-1]
    centred = states - (states * mask).sum() / count
    variance = ((centred * mask) ** 2).sum() / count
    return centred / torch.sqrt(variance + 1e-13)


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
        mixes = readout.layers in ("scalar-mix", "normed-scalar-mix")
        self.scalar_mix = ScalarMix(len(self.depths), readout.reads_batch) if mixes else None

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
        if pooling == "none" or reduced:
            mixed = self._mix(layers, attention_mask)
        else:
            mixed = self._pool(layers, attention_mask)
        if pooling == "pooler":
            assert pooler is not None, "checked when the model is built"
            vectors: Tensor = pooler(mixed)
            return vectors.float()
        return mixed

    def _pool(self, layers: Sequence[Tensor], attention_mask: Tensor) -> Tensor:
        """One vector per example, [B, H']; tokens are pooled first where that gives the same."""
        pooling = self.readout.pooling
        reduction: Reduction = pooling if pooling in ("mean", "max") else "cls"
        if pooling == "max" or self.readout.reads_batch:
            return reduce_tokens(self._mix(layers, attention_mask), attention_mask, reduction)
        return self._mix([reduce_tokens(each, attention_mask, reduction) for each in layers])

    def _mix(self, layers: Sequence[Tensor], attention_mask: Tensor | None = None) -> Tensor:
        if self.readout.pooling == "last-four":
            return torch.cat([layer.float() for layer in layers], dim=-1)
        if self.readout.layers == "mean":
            return torch.stack([layer.float() for layer in layers]).mean(dim=0)
        if self.scalar_mix is None:
            return layers[0].float()
        mixed: Tensor = self.scalar_mix(layers, attention_mask)
        return mixed
