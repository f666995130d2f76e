"""A bidirectional LSTM with highway connections (Wang et al. 2019, experiment B)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.initialisation import kaiming_
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens
from totune.ranges import Ints
from totune.tasks.base import Task


class HighwayLayer(nn.Module):
    """y = g * BiLSTM(x) + (1 - g) * x, with g = sigmoid(W x + b); x is projected if widths differ.

    Attributes:
        width: of y, 2 * hidden_size.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = BiLstm(input_size, hidden_size)
        self.width = self.lstm.width
        self.gate = nn.Linear(input_size, self.width)
        self.carry = (
            nn.Identity() if input_size == self.width else nn.Linear(input_size, self.width)
        )

    def forward(self, tokens: Tokens) -> Tensor:
        """[B, T, input_size] -> [B, T, 2 * hidden_size]."""
        carried: Tensor = self.carry(tokens.states)
        gate = torch.sigmoid(self.gate(tokens.states))
        states: Tensor = carried + gate * (self.lstm(tokens) - carried)
        return states


class HighwayLstmModule(HeadModule):
    """highway layers -> maxima over tokens -> out, dropout before each."""

    def __init__(self, options: "HighwayLstm", width: int, outputs: int) -> None:
        super().__init__()
        sizes = [width] + [2 * options.hidden_size] * (options.num_layers - 1)
        self.dropout = nn.Dropout(options.dropout)
        self.layers = nn.ModuleList(HighwayLayer(size, options.hidden_size) for size in sizes)
        self.out = nn.Linear(2 * options.hidden_size, outputs)
        kaiming_(self)

    def forward(self, states: States) -> Tensor:
        (tokens,) = states.tokens
        for layer in self.layers:
            tokens = Tokens(layer(Tokens(self.dropout(tokens.states), tokens.mask)), tokens.mask)
        outputs: Tensor = self.out(self.dropout(tokens.max()))  # [B, C]
        return outputs


@HEADS.register("highway-lstm")
@dataclass(frozen=True)
class HighwayLstm(Head):
    """Stacked BiLSTMs, round each of which a gate lets its input pass.

    The paper only names the network. Choices: the gate stands round a whole layer and reads the
    layer's input (highway networks, Srivastava et al. 2015), where He et al. 2017 have one inside
    every step, which no fast LSTM offers; a text is the maxima over its tokens, which served LSTM
    states best in Peters et al. 2019.

    Attributes:
        hidden_size: of each direction.
        num_layers: of highway layers.
        dropout: on the input of every layer.
    """

    hidden_size: Annotated[int, Field(ge=1), Ints(50, 300, log=True)] = 100
    num_layers: Annotated[int, Field(ge=1), Ints(1, 3)] = 2
    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("tokens",)

    def build(self, width: int, task: Task) -> HighwayLstmModule:
        return HighwayLstmModule(self, width, task.outputs)
