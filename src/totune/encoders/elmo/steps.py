"""The order in which a recurrence reads padded sequences: step by step, finished ones left out.

Shapes: B sequences, T places, S steps (the longest sequence), N places that are not padding.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """Where each step's tokens are; step s of a sequence is its place s, or s from its end.

    Sequences run the longest first, so that those which still run are always a prefix.

    Attributes:
        sizes: how many sequences still run at each step, [S], falling.
        order: the sequences, longest first, [B].
        rank: where each sequence is in `order`, [B].
        places: of all steps' tokens, end to end, in the flattened [B * T]: forward and backward,
            [2, N].
        found: the reverse, for every place [2, B * T] which of the tokens it is; 0 on padding.
    """

    sizes: tuple[int, ...]
    order: Tensor
    rank: Tensor
    places: Tensor
    found: Tensor

    @classmethod
    def of(cls, lengths: np.ndarray, width: int, device: torch.device) -> "Steps":
        """The steps of sequences of `lengths` ([B], from 1), padded to `width` places."""
        order = np.argsort(-lengths, kind="stable")
        longest = int(lengths.max())
        running = np.arange(longest)[:, None] < lengths[order]  # [S, B]
        step, ranked = np.nonzero(running)
        row = order[ranked]
        places = row * width + np.stack([step, lengths[row] - 1 - step])
        found = np.zeros((2, len(lengths) * width), dtype=np.int64)
        np.put_along_axis(found, places, np.arange(len(row)), axis=1)
        tensors = (
            torch.from_numpy(a).to(device) for a in (order, np.argsort(order), places, found)
        )
        return cls(tuple(running.sum(axis=1).tolist()), *tensors)

    def pack(self, states: Tensor) -> Tensor:
        """States [B, T, 2P] in the order of steps: forward and backward halves, [2, N, P]."""
        ahead, back = states.flatten(0, 1).chunk(2, dim=-1)
        halves = zip((ahead, back), self.places, strict=True)
        return torch.stack([half.index_select(0, at) for half, at in halves])

    def unpack(self, tokens: Tensor) -> Tensor:
        """The reverse of `pack`, [2, N, P] -> [B, T, 2P]; what padding holds is arbitrary."""
        halves = [half.index_select(0, at) for half, at in zip(tokens, self.found, strict=True)]
        return torch.cat(halves, dim=-1).view(len(self.order), -1, 2 * tokens.shape[-1])
