"""The supervised contrastive loss: all pairs of a batch, of the same label and of different ones.

Khosla et al. 2020, "Supervised contrastive learning", equation 2 (outside the logarithm). SetFit
(Tunstall et al. 2022) offers it beside the cosine loss of pairs that are drawn one by one.
"""

import torch
from torch import Tensor
from torch.nn import functional

TEMPERATURE = 0.1  # of Khosla et al., section 4.4


def pair_losses(vectors: Tensor, targets: Tensor) -> Tensor:
    """How unlikely a row's partners of the same label are among all other rows, by cosine.

    With s_ij the cosine of i and j over the temperature, and P(i) the others of i's label:
    the mean over j in P(i) of -log(exp s_ij / sum over k != i of exp s_ik).

    Args:
        vectors: [B, H].
        targets: classes, [B].

    Returns:
        [B]; 0 for a row that is the only one of its label.
    """
    units = functional.normalize(vectors, dim=1)
    itself = torch.eye(len(targets), dtype=torch.bool, device=targets.device)
    scores = (units @ units.T / TEMPERATURE).masked_fill(itself, -torch.inf)  # [B, B]
    same = (targets.unsqueeze(0) == targets.unsqueeze(1)) & ~itself
    distances = scores.logsumexp(dim=1, keepdim=True) - scores
    return distances.where(same, 0.0).sum(dim=1) / same.sum(dim=1).clamp(min=1)
