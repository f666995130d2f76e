"""Two texts read by one BiLSTM and matched by its states (BiMPM's first two layers).

Shapes: B pairs, T1 and T2 tokens of the two texts, H width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from totune.modules.matching import BilateralMatching
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens


class ContextMatching(nn.Module):
    """BiLSTM over either text -> matching of forward and of backward states.

    Args:
        width: H.
        hidden_size: of each direction.
        num_perspectives: K.
        dropout: on the input. None on the states that are matched: it makes all cosines smaller in
            training than in prediction, by more than what tells one token's from another's.

    Attributes:
        width: of the result, 8 * K.
    """

    def __init__(self, width: int, hidden_size: int, num_perspectives: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.context = BiLstm(width, hidden_size)
        self.matching = BilateralMatching(hidden_size, num_perspectives)
        self.width = self.matching.width

    def forward(self, first: Tokens, second: Tokens) -> tuple[Tokens, Tokens]:
        """[B, T1, H] and [B, T2, H] -> matches [B, T1, 8K] and [B, T2, 8K]."""
        both = together(first, second)
        contexts = self.context(Tokens(self.dropout(both.states), both.mask))
        ahead, back = contexts.chunk(2, dim=-1)  # [2B, T, hidden_size] each
        matches: tuple[Tokens, Tokens] = self.matching(
            apart(ahead, first, second), apart(back, first, second)
        )
        return matches


def together(first: Tokens, second: Tokens) -> Tokens:
    """Both texts of B pairs as 2B sequences: one pass of a network they share costs less than two.

    Args:
        first: [B, T1, H].
        second: [B, T2, H].

    Returns:
        [2B, max(T1, T2), H], zeros where a text was lengthened.
    """
    longest = max(first.mask.shape[1], second.mask.shape[1])
    states, masks = [], []
    for text in (first, second):
        missing = longest - text.mask.shape[1]
        states.append(functional.pad(text.states, (0, 0, 0, missing)))
        masks.append(functional.pad(text.mask, (0, missing)))
    return Tokens(torch.cat(states), torch.cat(masks))


def apart(states: Tensor, first: Tokens, second: Tokens) -> tuple[Tokens, Tokens]:
    """New states [2B, T, H] of what was put `together`, as the two texts they belong to."""
    one, two = states.chunk(2)
    return (
        Tokens(one[:, : first.mask.shape[1]], first.mask),
        Tokens(two[:, : second.mask.shape[1]], second.mask),
    )
