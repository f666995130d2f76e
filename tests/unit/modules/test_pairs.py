"""The loss of pairs against a plain loop, and where a row has no partner."""

import math

import pytest
import torch
from torch.nn import functional

from totune.modules.pairs import TEMPERATURE, pair_losses


def plain_loss(vectors: torch.Tensor, targets: list[int], row: int) -> float:
    def score(other: int) -> float:
        cosine = functional.cosine_similarity(vectors[row], vectors[other], dim=0)
        return math.exp(float(cosine) / TEMPERATURE)

    others = [at for at in range(len(targets)) if at != row]
    partners = [at for at in others if targets[at] == targets[row]]
    total = sum(score(other) for other in others)
    return -sum(math.log(score(at) / total) for at in partners) / max(1, len(partners))


def test_it_is_the_mean_over_partners() -> None:
    targets = [0, 1, 0, 2, 1, 0]  # the row of class 2 has no partner
    vectors = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    found = pair_losses(vectors, torch.tensor(targets))
    assert found.tolist() == pytest.approx(
        [plain_loss(vectors, targets, row) for row in range(6)], abs=1e-4
    )
    assert found[3] == 0


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_rows_without_a_partner_leave_the_encoder_alone(rows: int) -> None:
    vectors = torch.randn(rows, 3, requires_grad=True)
    pair_losses(vectors, torch.arange(rows)).sum().backward()
    assert vectors.grad is not None
    assert not vectors.grad.any()
