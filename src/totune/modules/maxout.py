"""Maxout: a linear layer whose activation is the largest of several pieces."""

from torch import Tensor, nn


class Maxout(nn.Module):
    """Unit u is the largest of the linear rows u * pieces .. u * pieces + pieces - 1.

    From Goodfellow et al. 2013, section 3.

    Args:
        input_size: of the vectors read.
        size: how many units there are.
        pieces: linear rows per unit.
    """

    def __init__(self, input_size: int, size: int, pieces: int) -> None:
        super().__init__()
        self.size = size
        self.pieces = pieces
        self.linear = nn.Linear(input_size, size * pieces)

    def forward(self, vectors: Tensor) -> Tensor:
        """[..., input_size] -> [..., size]."""
        rows: Tensor = self.linear(vectors)  # [..., size * pieces]
        return rows.view(*vectors.shape[:-1], self.size, self.pieces).amax(dim=-1)
