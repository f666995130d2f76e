"""DenseNet over word pieces beside [CLS] (Wang et al. 2019, experiment B).

"Four independent blocks and each block has four CNNs connected by residual"; the vector it gives is
concatenated with [CLS].
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.initialisation import kaiming_
from totune.modules.tokens import Tokens
from totune.ranges import Ints
from totune.tasks.base import Task

BLOCKS = 4
CONVOLUTIONS = 4  # of each block
KERNEL_SIZE = 3


class Convolution(nn.Module):
    """norm -> ReLU -> convolution over neighbouring tokens -> dropout, added to the input."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.convolution = nn.Conv1d(size, size, KERNEL_SIZE, padding=KERNEL_SIZE // 2)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tokens) -> Tokens:
        """[B, T, size] -> [B, T, size]."""
        read = Tokens(torch.relu(self.norm(tokens.states)), tokens.mask).zeroed()
        added = self.convolution(read.mT).mT
        return Tokens(tokens.states + self.dropout(added), tokens.mask)


class DenseNetModule(HeadModule):
    """projection -> four blocks -> maxima over tokens, beside [CLS] -> dropout -> out."""

    def __init__(self, options: "DenseNet", width: int, outputs: int) -> None:
        super().__init__()
        size = options.hidden_size
        self.dropout = nn.Dropout(options.dropout)
        self.transitions = nn.ModuleList(
            nn.Linear(width if block == 0 else size, size) for block in range(BLOCKS)
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(*(Convolution(size, options.dropout) for _ in range(CONVOLUTIONS)))
            for _ in range(BLOCKS)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(BLOCKS))
        self.out = nn.Linear(size + width, outputs)
        kaiming_(self)

    def forward(self, states: States) -> Tensor:
        (given,) = states.tokens
        tokens = Tokens(self.dropout(given.states), given.mask)
        for transition, block, norm in zip(self.transitions, self.blocks, self.norms, strict=True):
            tokens = block(Tokens(transition(tokens.states), given.mask))
            tokens = Tokens(torch.relu(norm(tokens.states)), given.mask)
        beside = torch.cat([tokens.max(), given.states[:, 0]], dim=-1)  # [B, size + H]
        outputs: Tensor = self.out(self.dropout(beside))  # [B, C]
        return outputs


@HEADS.register("densenet")
@dataclass(frozen=True)
class DenseNet(Head):
    """Sixteen convolutions in four blocks, whose maxima stand beside [CLS].

    Choices the paper leaves open: blocks follow one another, and a linear layer between them (the
    transition layer of Huang et al. 2017, without its pooling) ends the residual path, so a block's
    connections are its own; a convolution reads three tokens, after norm and ReLU as in Huang et
    al. 2017, with layer norm for batch norm, which would let batch-mates matter.

    Attributes:
        hidden_size: channels of every convolution.
        dropout: after every convolution, on the input and before the output layer.
    """

    hidden_size: Annotated[int, Field(ge=1), Ints(32, 256, log=True)] = 128
    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("tokens",)

    def build(self, width: int, task: Task) -> DenseNetModule:
        return DenseNetModule(self, width, task.outputs)
