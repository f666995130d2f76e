"""The best tags of a sentence under a linear-chain CRF.

The recursion runs from both ends at once and meets in the middle: half as many steps.

Shapes: S sentences, W words (padded), C tags, K + 1 steps of the longer half, 2 directions.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from totune.modules.chains import both_ways, reversal


class TransitionScores(NamedTuple):
    """What a path's score consists of, beside its logits.

    Attributes:
        moves: [C, C], from a tag (row) to the next one (column).
        start: [C], of the first tag.
        end: [C], of the last tag.
    """

    moves: Tensor
    start: Tensor
    end: Tensor


def best_path(logits: Tensor, mask: Tensor, scores: TransitionScores) -> Tensor:
    """The tags with the highest sum of logits and scores; of equals, those of lower number.

    Args:
        logits: [S, W, C], zero on padding.
        mask: [S, W] bool, true on words: a prefix of at least one word in every row.
        scores: of the same dtype as `logits`.

    Returns:
        [S, W], 0 on padding.
    """
    lengths, words = mask.sum(dim=1), mask.shape[1]
    ends = torch.stack([(lengths - 1) // 2, lengths // 2])  # [2, S], the steps that meet
    half = both_ways(logits, reversal(lengths, words)[:, : words // 2 + 1])  # [K + 1, 2, C, S]
    best = _best_scores(half, scores)
    at = ends.unsqueeze(1).expand(-1, half.shape[2], -1).unsqueeze(0)  # [1, 2, C, S]
    from_start, from_end = best.gather(0, at)[0]  # [C, S] each; both hold the middle's logits
    meeting = (from_start + from_end - half.gather(0, at)[0, 0]).argmax(dim=0)  # [S]
    return _joined(_traced(best, ends, meeting, scores.moves), lengths, words)


def _best_scores(steps: Tensor, scores: TransitionScores) -> Tensor:
    """The score of the best way to every tag from either end, [K + 1, 2, C, S]."""
    moves = torch.stack([scores.moves, scores.moves.T]).unsqueeze(-1)  # [2, C from, C to, 1]
    ways = [steps[0] + torch.stack([scores.start, scores.end]).unsqueeze(-1)]  # [2, C, S]
    for step in steps[1:].unbind():
        ways.append((ways[-1].unsqueeze(2) + moves).amax(dim=1).add_(step))
    return torch.stack(ways)


def _traced(best: Tensor, ends: Tensor, meeting: Tensor, moves: Tensor) -> Tensor:
    """The tags on the way from the middle back to both ends.

    Args:
        best: of `_best_scores`, [K + 1, 2, C, S]; is written to.
        ends: the step of each direction that reaches the middle, [2, S].
        meeting: the tag there, [S].
        moves: [C, C].

    Returns:
        [K + 1, 2, S]; what lies past the middle means nothing.
    """
    towards = torch.stack([moves.T, moves])  # [2, C to, C from]
    sentence = torch.arange(len(meeting), device=best.device)
    direction = torch.arange(2, device=best.device).unsqueeze(1)  # [2, 1]
    # Every way begins at step K; infinity makes it pass the middle, wherever it came from.
    best[ends, direction, meeting, sentence] = torch.inf
    rows = direction.expand_as(ends).flatten()  # [2 * S]
    tags = [torch.zeros_like(rows)]
    for step in reversed(best.transpose(2, 3).flatten(1, 2).unbind()):  # [2 * S, C]
        tags.append(towards[rows, tags[-1]].add_(step).argmax(dim=1))
    return torch.stack(tags[:0:-1]).view(-1, *ends.shape)


def _joined(halves: Tensor, lengths: Tensor, words: int) -> Tensor:
    """Both halves as whole sentences: [K + 1, 2, S] -> [S, W]."""
    places = torch.arange(words, device=lengths.device)
    mirrored = (lengths.unsqueeze(1) - 1 - places).clamp(min=0)  # [S, W]
    second = places > mirrored
    at = torch.where(second, mirrored + len(halves), places)
    flat = halves.permute(2, 1, 0).flatten(1)  # [S, 2 * (K + 1)]
    padding = places >= lengths.unsqueeze(1)
    return flat.gather(1, at.clamp(max=flat.shape[1] - 1)).masked_fill(padding, 0)
