"""What the recursions of a linear-chain CRF share: both directions of a batch, step by step.

Forward and backward recursions are the same on a sentence and on its reverse, so both run in one
pass. Sentences stand in the last dimension, where the small steps are fastest.

Shapes: S sentences, W words (padded), C tags, 2 directions: from the start and from the end.
"""

import torch
from torch import Tensor


def reversal(lengths: Tensor, words: int) -> Tensor:
    """The place of each word in its reversed sentence, [S] -> [S, W]; padding stays in place."""
    places = torch.arange(words, device=lengths.device)
    mirrored = lengths.unsqueeze(1) - 1 - places
    return torch.where(mirrored >= 0, mirrored, places)


def both_ways(logits: Tensor, mirror: Tensor) -> Tensor:
    """Logits in steps from each end.

    Args:
        logits: [S, W, C].
        mirror: their `reversal`, or its first columns if no more steps are needed, [S, T].

    Returns:
        [T, 2, C, S].
    """
    tags, steps = logits.shape[2], mirror.shape[1]
    reverse = logits.gather(1, mirror.unsqueeze(-1).expand(-1, -1, tags))
    return torch.stack([logits[:, :steps], reverse]).permute(2, 0, 3, 1).contiguous()
