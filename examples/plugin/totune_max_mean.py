"""A head for totune: one layer on [max; mean] of a text's word pieces."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

import totune


class MaxMeanModule(totune.HeadModule):
    """[max; mean] -> out."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.out = nn.Linear(2 * width, outputs)

    def forward(self, states: totune.States) -> Tensor:
        (tokens,) = states.tokens  # states [B, T, H] and their mask; padding is never read
        outputs: Tensor = self.out(torch.cat([tokens.max(), tokens.mean()], dim=1))  # [B, C]
        return outputs


@totune.HEADS.register("max-mean")
@dataclass(frozen=True)
class MaxMean(totune.Head):
    """One layer on [max; mean] of the word pieces."""

    wants: ClassVar[tuple[totune.InputKind, ...]] = ("tokens",)

    def build(self, width: int, task: totune.Task) -> MaxMeanModule:
        return MaxMeanModule(width, task.outputs)
