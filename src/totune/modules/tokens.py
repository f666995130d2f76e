"""Padded token sequences, and reductions that never read the padding.

Shapes: B sequences, T tokens (padded), H width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Tokens:
    """States of B sequences of different lengths.

    Attributes:
        states: [B, T, H]; what padding holds is arbitrary and must not be read.
        mask: [B, T] bool, true on the tokens: a prefix of at least one token in every row.
    """

    states: Tensor
    mask: Tensor

    @property
    def lengths(self) -> Tensor:
        """How many tokens each sequence has, [B]."""
        return self.mask.sum(dim=1)

    def zeroed(self) -> Tensor:
        """The states with zeros on padding, [B, T, H]."""
        return self.states.masked_fill(~self.mask.unsqueeze(-1), 0.0)

    def max(self) -> Tensor:
        """The largest value of each feature over the tokens, [B, H]."""
        largest: Tensor = _Max.apply(self.states, self.mask)  # type: ignore[no-untyped-call]
        return largest

    def min(self) -> Tensor:
        """The smallest value of each feature over the tokens, [B, H]."""
        return -Tokens(-self.states, self.mask).max()

    def mean(self) -> Tensor:
        """The mean over the tokens, [B, H]."""
        return self.zeroed().sum(dim=1) / self.lengths.unsqueeze(-1)


class _Max(torch.autograd.Function):
    """`amax` over the tokens, whose own way back counts ties in integers, several times slower."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: Tensor) -> Tensor:
        lowest = torch.finfo(states.dtype).min
        candidates = states.masked_fill(~mask.unsqueeze(-1), lowest)  # [B, T, H]
        largest = candidates.amax(dim=1)
        ctx.save_for_backward(candidates, largest)
        return largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        candidates, largest = ctx.saved_tensors
        chosen = (candidates == largest.unsqueeze(1)).to(gradient.dtype)
        return chosen.mul_((gradient / chosen.sum(dim=1)).unsqueeze(1)), None


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension with all weight on what `mask` (broadcast) allows.

    Every row of `mask` must allow something.
    """
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
