"""Padded token sequences, and reductions that never read the padding.

Shapes: B sequences, T tokens (padded), H width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


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
        lowest = torch.finfo(self.states.dtype).min
        return self.states.masked_fill(~self.mask.unsqueeze(-1), lowest).amax(dim=1)

    def min(self) -> Tensor:
        """The smallest value of each feature over the tokens, [B, H]."""
        highest = torch.finfo(self.states.dtype).max
        return self.states.masked_fill(~self.mask.unsqueeze(-1), highest).amin(dim=1)

    def mean(self) -> Tensor:
        """The mean over the tokens, [B, H]."""
        return self.zeroed().sum(dim=1) / self.lengths.unsqueeze(-1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension with all weight on what `mask` (broadcast) allows.

    Every row of `mask` must allow something.
    """
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
