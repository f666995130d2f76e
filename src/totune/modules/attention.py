"""Attention between and within token sequences, and the vectors made from what is attended.

Every attention here is a dot product without scaling, as in ESIM (Chen et al. 2017, section 3.2)
and the biattentive classification network (McCann et al. 2017, section 4).
Shapes: B rows, T and S tokens of two sequences (padded), H width.
"""

import torch
from torch import Tensor, nn

from totune.modules.tokens import Tokens, masked_softmax


def similarity(queries: Tokens, keys: Tokens) -> Tensor:
    """The dot product of every query with every key, [B, T, S]; zeros where either is padding."""
    return queries.zeroed() @ keys.zeroed().transpose(1, 2)


def attention(scores: Tensor, keys: Tokens) -> Tensor:
    """Scores [B, T, S] as weights [B, T, S] that sum to 1 over the tokens of `keys`."""
    return masked_softmax(scores, keys.mask.unsqueeze(1))


def attend(weights: Tensor, keys: Tokens) -> Tensor:
    """The mean of the states of `keys` under weights [B, T, S] -> [B, T, H]."""
    return weights @ keys.zeroed()


def cross_attention(first: Tokens, second: Tokens) -> tuple[Tensor, Tensor]:
    """What each token finds in the other text (Chen et al. 2017, equations 11-13).

    Returns:
        The second text as attended to by the tokens of the first, [B, T, H], and the first as
        attended to by those of the second, [B, S, H].
    """
    scores = similarity(first, second)  # [B, T, S]
    from_second = attend(attention(scores, second), second)
    from_first = attend(attention(scores.transpose(1, 2), first), first)
    return from_second, from_first


def enhance(tokens: Tokens, attended: Tensor) -> Tokens:
    """[x; x~; x - x~; x * x~] of each token, 4H wide (Chen et al. 2017, equations 14-15).

    Args:
        tokens: x, of width H.
        attended: x~ [B, T, H], what each token finds in the other text.
    """
    x = tokens.zeroed()
    return Tokens(torch.cat([x, attended, x - attended, x * attended], dim=-1), tokens.mask)


def enhanced_pair(first: Tokens, second: Tokens) -> tuple[Tokens, Tokens]:
    """Both texts, each token enhanced by what it finds in the other text: 4H wide."""
    from_second, from_first = cross_attention(first, second)
    return enhance(first, from_second), enhance(second, from_first)


def mean_and_max(first: Tokens, second: Tokens) -> Tensor:
    """[mean; max] over the tokens of both texts, [B, 4H] (Chen et al. 2017, equations 18-20)."""
    return torch.cat([first.mean(), first.max(), second.mean(), second.max()], dim=-1)


class SelfAttentivePooling(nn.Module):
    """A mean over tokens, weighted by a learnt score of each (McCann et al. 2017, section 4).

    The score has no bias: softmax would cancel it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)

    def weights(self, tokens: Tokens) -> Tensor:
        """The weight of each token, [B, T]; zero on padding."""
        scores: Tensor = self.score(tokens.zeroed())  # [B, T, 1]
        return masked_softmax(scores.squeeze(-1), tokens.mask)

    def forward(self, tokens: Tokens) -> Tensor:
        """[B, T, H] -> [B, H]."""
        return attend(self.weights(tokens).unsqueeze(1), tokens).squeeze(1)
