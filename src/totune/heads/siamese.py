"""The light head for two texts that are encoded apart by one encoder."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.tasks.base import Task


class SiameseModule(HeadModule):
    """[u; v; |u - v|; u * v] -> dropout -> out."""

    def __init__(self, options: "Siamese", width: int, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(options.dropout)
        self.out = nn.Linear(4 * width, outputs)
        nn.init.xavier_uniform_(self.out.weight)  # Glorot and Bengio 2010
        nn.init.zeros_(self.out.bias)

    def linear_layer(self) -> nn.Linear:
        return self.out

    def linear_inputs(self, states: States) -> Tensor:
        u, v = states.vectors  # [B, H] each
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)  # [B, 4H]

    def forward(self, states: States) -> Tensor:
        outputs: Tensor = self.out(self.dropout(self.linear_inputs(states)))  # [B, C]
        return outputs


@HEADS.register("siamese")
@dataclass(frozen=True)
class Siamese(Head):
    """A linear layer on both texts' vectors, their distance and product (Conneau et al. 2017).

    Attributes:
        dropout: before the linear layer.
    """

    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("pooled-pair",)

    def build(self, width: int, task: Task) -> SiameseModule:
        return SiameseModule(self, width, task.outputs)
