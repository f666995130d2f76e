"""From a vector per word to tags: each word alone, or whole sentences by a CRF.

Shapes: P words of S sentences in order, W words of the longest sentence, H width, C tags.
"""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from totune.errors import ConfigError
from totune.modules.crf import LinearChainCrf
from totune.tasks.base import Task


@runtime_checkable
class HasScheme(Protocol):
    """A task that knows which of its tags may follow which."""

    def allowed_transitions(self) -> np.ndarray | None:
        """As `LinearChainCrf` wants it, [C + 2, C + 2] bool; None where any may follow any."""
        ...


class TagOutput(nn.Module):
    """dropout -> linear [-> CRF].

    Args:
        width: H.
        tags: C.
        dropout: on the vectors.
        crf: over the tags of a sentence, or None.
    """

    def __init__(self, width: int, tags: int, dropout: float, crf: LinearChainCrf | None) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, tags)
        self.crf = crf

    def forward(self, vectors: Tensor) -> Tensor:
        """[P, H] -> [P, C]."""
        outputs: Tensor = self.out(self.dropout(vectors))
        return outputs

    def losses(self, outputs: Tensor, targets: Tensor, counts: Tensor) -> Tensor | None:
        """Negative log-likelihoods, each spread evenly over its sentence's words: [P].

        None without a CRF. A sentence with a tag that training does not know, which has no
        likelihood, costs nothing.

        Args:
            outputs: [P, C].
            targets: [P]; below 0 where training knows no such tag.
            counts: words of each sentence, [S] with sum P.
        """
        if self.crf is None:
            return None
        tags, mask = by_sentence(targets, counts)
        logits, _ = by_sentence(outputs, counts)
        found = -self.crf.log_likelihood(logits, tags.clamp(min=0), mask)  # [S]
        found = torch.where((tags >= 0).all(dim=1), found, 0.0)
        return (found / counts).repeat_interleave(counts)

    def best(self, outputs: Tensor, counts: Tensor) -> Tensor:
        """The outputs as they are, or with a CRF ones at its best tags and zeros else: [P, C]."""
        if self.crf is None:
            return outputs
        logits, mask = by_sentence(outputs, counts)
        tags = self.crf.decode(logits, mask)[mask]  # [P]
        return functional.one_hot(tags, outputs.shape[1]).to(outputs.dtype)


def tag_output(
    head: str, width: int, task: Task, *, dropout: float, crf: bool, constrained: bool
) -> TagOutput:
    """The output that a head's options ask for.

    Args:
        head: its name, for messages.
        width: H.
        task: gives the tags.
        dropout: on the vectors.
        crf: whether a CRF stands on top.
        constrained: whether the CRF predicts only what the task's tagging scheme allows.

    Raises:
        ConfigError: if the task does not tag words.
    """
    if not task.per_word:
        raise ConfigError(
            f"The head {head!r} tags words, but {task.name} has one label per row. Choose another "
            "head, such as 'linear', or data with a list of words and a list of tags in every row."
        )
    if not crf:
        return TagOutput(width, task.outputs, dropout, None)
    allowed = task.allowed_transitions() if constrained and isinstance(task, HasScheme) else None
    moves = None if allowed is None else torch.from_numpy(allowed)
    return TagOutput(width, task.outputs, dropout, LinearChainCrf(task.outputs, moves))


def by_sentence(values: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Values of words by their sentences.

    Args:
        values: [P, ...].
        counts: words of each sentence, [S] with sum P.

    Returns:
        The values [S, W, ...], zeros on padding, and which are words: [S, W] bool.
    """
    places = torch.arange(int(counts.max()), device=counts.device)
    mask = places < counts.unsqueeze(1)  # [S, W]
    padded = values.new_zeros(*mask.shape, *values.shape[1:])
    wide = mask.view(*mask.shape, *[1] * (values.dim() - 1)).expand_as(padded)
    return padded.masked_scatter(wide, values), mask
