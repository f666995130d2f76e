"""Multi-perspective matching of two texts (BiMPM: Wang, Hamza and Florian 2017, section 3.2).

A perspective k weighs the features before a cosine: m_k(u, v; W) = cos(W_k * u, W_k * v).
Shapes: B pairs, T1 and T2 tokens of the two texts, H width, K perspectives.
"""

import torch
from torch import Tensor, nn

from totune.modules.tokens import Tokens

NO_DIRECTION = 1e-16  # a vector of a smaller squared length has cosine 0 with everything


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """cos(u, v) of all pairs: [B, T1, H] and [B, T2, H] -> [B, T1, T2]."""
    return _unit(first) @ _unit(second).mT


def multi_cosines(first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
    """m(u, v; W) of all pairs.

    The squared weights are multiplied into one side alone and the products are divided by the
    lengths, so nothing larger than [B, K, T1, H] is ever held.

    Args:
        first: [B, T1, H].
        second: [B, T2, H].
        weights: W [K, H].

    Returns:
        [B, K, T1, T2].
    """
    squares = weights.square()
    weighted = (first.unsqueeze(1) * squares[:, None]).flatten(1, 2)  # [B, K * T1, H]
    shape = (len(first), len(weights), first.shape[1], second.shape[1])
    products = (weighted @ second.mT).view(shape)
    ahead = _inverse_root(first.square() @ squares.T).mT.unsqueeze(-1)  # [B, K, T1, 1]
    across = _inverse_root(second.square() @ squares.T).mT.unsqueeze(-2)  # [B, K, 1, T2]
    return products * ahead * across


def multi_cosine(one: Tensor, other: Tensor, weights: Tensor) -> Tensor:
    """m(u, v; W) of vectors side by side.

    Args:
        one: [B, T, H].
        other: [B, T, H], or [B, 1, H] for the same vector everywhere.
        weights: W [K, H].

    Returns:
        [B, T, K].
    """
    squares = weights.square().T  # [H, K]
    lengths = _inverse_root(one.square() @ squares) * _inverse_root(other.square() @ squares)
    return ((one * other) @ squares) * lengths


def attended(alphas: Tensor, other: Tensor) -> Tensor:
    """What each token attends to: sum_q alpha_q q / sum_q alpha_q, up to a positive factor.

    The sum of cosines is often negative, which turns the vector round, and may come near zero,
    where a division loses all precision. A cosine sees only the direction, so the sign is enough.

    Args:
        alphas: [B, T1, T2], zeros on padding of either text.
        other: [B, T2, H], finite on padding.

    Returns:
        [B, T1, H]; the mean vector times |sum_q alpha_q|.
    """
    return (alphas @ other) * alphas.sum(dim=-1, keepdim=True).sign()


def most_similar(alphas: Tensor, other: Tokens) -> Tensor:
    """The place of each token's largest cosine among the other's tokens, [B, T1, T2] -> [B, T1]."""
    return (alphas + _bias(other, alphas).unsqueeze(1)).argmax(dim=-1)


class Matching(nn.Module):
    """The four matchings of one context with the same direction's context of the other text.

    Both texts are matched, each against the other, with the same weights:

    - full: m(h, the other's final state), final in the direction of reading;
    - max-pooling: per perspective the largest m(h, q) over the other's tokens q;
    - attentive: m(h, the other's mean weighed by cosines);
    - max-attentive: m(h, the q of largest cosine).

    Args:
        width: H.
        num_perspectives: K.
        forward_in_time: whether the final state is the last token's, or the first's.

    Attributes:
        width: of the result, 4 * K.
    """

    def __init__(self, width: int, num_perspectives: int, forward_in_time: bool) -> None:
        super().__init__()
        self.width = 4 * num_perspectives
        self.forward_in_time = forward_in_time
        self.full = nn.Parameter(torch.empty(num_perspectives, width))
        self.max_pooling = nn.Parameter(torch.empty(num_perspectives, width))
        self.attentive = nn.Parameter(torch.empty(num_perspectives, width))
        self.max_attentive = nn.Parameter(torch.empty(num_perspectives, width))
        for weights in self.parameters():
            nn.init.kaiming_normal_(weights)

    def forward(self, first: Tokens, second: Tokens) -> tuple[Tensor, Tensor]:
        """Matches of both texts, [B, T1, 4K] and [B, T2, 4K], zeros on padding.

        Cosines of half precision lose the differences between tokens: everything runs in float32,
        or in float64 where that is given.
        """
        with torch.autocast(first.states.device.type, enabled=False):
            first, second = _full_precision(first), _full_precision(second)
            alphas = cosines(first.states, second.states)
            pooled = _pooled(first, second, self.max_pooling)
            return (
                self._matches(first, second, alphas, pooled[0]),
                self._matches(second, first, alphas.mT, pooled[1]),
            )

    def _matches(self, one: Tokens, other: Tokens, alphas: Tensor, pooled: Tensor) -> Tensor:
        closest = most_similar(alphas, other).unsqueeze(-1).expand(-1, -1, one.states.shape[-1])
        matches = [
            multi_cosine(one.states, self._final(other), self.full),
            pooled,
            multi_cosine(one.states, attended(alphas, other.states), self.attentive),
            multi_cosine(one.states, other.states.gather(1, closest), self.max_attentive),
        ]
        return Tokens(torch.cat(matches, dim=-1), one.mask).zeroed()

    def _final(self, tokens: Tokens) -> Tensor:
        """The state at which reading ends, [B, 1, H]."""
        if not self.forward_in_time:
            return tokens.states[:, :1]
        last = (tokens.lengths - 1).view(-1, 1, 1).expand(-1, 1, tokens.states.shape[-1])
        return tokens.states.gather(1, last)


class BilateralMatching(nn.Module):
    """Matching in both directions of reading: 8 * K numbers per token of either text.

    Args:
        width: H, of each direction's context.
        num_perspectives: K.

    Attributes:
        width: of the result, 8 * K.
    """

    def __init__(self, width: int, num_perspectives: int) -> None:
        super().__init__()
        self.ahead = Matching(width, num_perspectives, forward_in_time=True)
        self.back = Matching(width, num_perspectives, forward_in_time=False)
        self.width = self.ahead.width + self.back.width

    def forward(
        self, ahead: tuple[Tokens, Tokens], back: tuple[Tokens, Tokens]
    ) -> tuple[Tokens, Tokens]:
        """The two texts' forward contexts and backward contexts -> their matches [B, T, 8K]."""
        matches = zip(self.ahead(*ahead), self.back(*back), strict=True)
        first, second = (torch.cat(pair, dim=-1) for pair in matches)
        return Tokens(first, ahead[0].mask), Tokens(second, ahead[1].mask)


def _pooled(first: Tokens, second: Tokens, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The largest multi-perspective cosines: [B, T1, K] over second's tokens, [B, T2, K]."""
    pairs = multi_cosines(first.states, second.states, weights)  # [B, K, T1, T2]
    # Adding a bias and `max` take 40% of the time of `masked_fill` and `amax`, mostly going back.
    over_second = (pairs + _bias(second, pairs)[:, None, None]).max(dim=3).values
    over_first = (pairs + _bias(first, pairs)[:, None, :, None]).max(dim=2).values
    return over_second.mT, over_first.mT


def _bias(tokens: Tokens, like: Tensor) -> Tensor:
    """What keeps padding from being a maximum, [B, T]."""
    lowest = torch.finfo(like.dtype).min
    return torch.zeros_like(tokens.mask, dtype=like.dtype).masked_fill(~tokens.mask, lowest)


def _full_precision(tokens: Tokens) -> Tokens:
    """The tokens in float32 or better, zeros on padding."""
    states = tokens.zeroed()
    return Tokens(states.to(torch.promote_types(states.dtype, torch.float32)), tokens.mask)


def _unit(vectors: Tensor) -> Tensor:
    return vectors * _inverse_root(vectors.square().sum(dim=-1, keepdim=True))


def _inverse_root(squares: Tensor) -> Tensor:
    """1 / sqrt, and where there is no direction 0 with gradient 0."""
    return torch.where(
        squares > NO_DIRECTION, squares.clamp_min(NO_DIRECTION).rsqrt(), torch.zeros_like(squares)
    )
