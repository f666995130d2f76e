"""The biattentive classification network (McCann et al. 2017) over one text.

As AllenNLP has it, which Peters et al. 2019 (A.1) used: the text attends to itself, and the maxout
layers come without batch normalisation, so that no row depends on its batch-mates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.attention import SelfAttentivePooling, attend, attention, similarity
from totune.modules.maxout import Maxout
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens
from totune.ranges import Ints
from totune.tasks.base import Task


class BcnModule(HeadModule):
    """dense -> BiLSTM -> biattention -> BiLSTM -> four poolings -> maxout layers.

    Weights start as PyTorch starts them, which is how AllenNLP's do.

    Args:
        width: H of the states read.
        dense_size: of the first layer.
        encoder_size: of each direction of the BiLSTM over the text.
        integrator_size: of each direction of the BiLSTM over what attention found.
        maxout_sizes: of the maxout layers, the last of which gives the outputs.
        pieces: linear rows per unit in each maxout layer.
        input_dropout: on the states read.
        dropout: after the first layer, the pooling and each maxout layer but the last.
    """

    def __init__(
        self,
        width: int,
        *,
        dense_size: int,
        encoder_size: int,
        integrator_size: int,
        maxout_sizes: Sequence[int],
        pieces: Sequence[int],
        input_dropout: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.input_dropout = nn.Dropout(input_dropout)
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, dense_size)
        self.encoder = BiLstm(dense_size, encoder_size)
        self.integrator = BiLstm(3 * self.encoder.width, integrator_size)
        self.self_attention = SelfAttentivePooling(self.integrator.width)
        sizes = [4 * self.integrator.width, *maxout_sizes]
        self.maxout = nn.ModuleList(
            Maxout(below, size, rows)
            for (below, size), rows in zip(pairwise(sizes), pieces, strict=True)
        )

    def begin_at(self, outputs: Tensor) -> None:
        last = self.maxout[-1]
        assert isinstance(last, Maxout)
        with torch.no_grad():
            last.linear.bias.copy_(outputs.repeat_interleave(last.pieces))

    def forward(self, states: States) -> Tensor:
        text = self.integrate(self.encode(states.tokens[0]))
        return self.classify(self.pool(text))

    def encode(self, tokens: Tokens) -> Tokens:
        """The text in its own context, [B, T, H] -> [B, T, 2 * encoder_size]."""
        dense = torch.relu(self.dense(self.input_dropout(tokens.zeroed())))
        encoded = self.encoder(Tokens(self.dropout(dense), tokens.mask))
        return Tokens(encoded, tokens.mask)

    def integrate(self, encoded: Tokens) -> Tokens:
        """The text with what it finds in itself, [B, T, 2 * integrator_size]."""
        return Tokens(self.integrator(biattended(encoded)), encoded.mask)

    def pool(self, text: Tokens) -> Tensor:
        """[max; min; mean; self-attentive] over the tokens, [B, 8 * integrator_size]."""
        return torch.cat([text.max(), text.min(), text.mean(), self.self_attention(text)], dim=-1)

    def classify(self, pooled: Tensor) -> Tensor:
        """[B, 8 * integrator_size] -> [B, C]."""
        for layer in self.maxout:
            pooled = layer(self.dropout(pooled))
        return pooled


def biattended(encoded: Tokens) -> Tokens:
    """[e; e - e~; e * e~] of each token, where e~ is what it finds in its own text: 3H wide."""
    attended = attend(attention(similarity(encoded, encoded), encoded), encoded)  # [B, T, H]
    e = encoded.zeroed()
    return Tokens(torch.cat([e, e - attended, e * attended], dim=-1), encoded.mask)


@HEADS.register("bcn")
@dataclass(frozen=True)
class Bcn(Head):
    """A text that attends to itself, then is pooled in four ways.

    The sizes and the input's dropout are those of AllenNLP's network for SST on ELMo (Peters et al.
    2018), whose other dropouts lie between 0.1 and 0.3.

    Attributes:
        hidden_size: of the first layer and of each direction of both BiLSTMs.
        pieces: linear rows per maxout unit; the layers have a half and a quarter as many units as
            there are pooled features, then the outputs.
        input_dropout: on the states of the encoder.
        dropout: after the first layer, the pooling and each maxout layer but the last.
    """

    hidden_size: Annotated[int, Field(ge=1), Ints(100, 600, log=True)] = 300
    pieces: Annotated[int, Field(ge=2)] = 4
    input_dropout: Dropout = 0.5
    dropout: Dropout = 0.2

    wants: ClassVar[tuple[InputKind, ...]] = ("tokens",)

    def build(self, width: int, task: Task) -> BcnModule:
        pooled = 8 * self.hidden_size
        return BcnModule(
            width,
            dense_size=self.hidden_size,
            encoder_size=self.hidden_size,
            integrator_size=self.hidden_size,
            maxout_sizes=(pooled // 2, pooled // 4, task.outputs),
            pieces=(self.pieces,) * 3,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
        )
