"""A BiLSTM over all word pieces, read at the first piece of each word.

As Peters et al. 2019 (A.1) tag on frozen encoders: two layers, then a softmax on BERT and a CRF on
ELMo; Wang et al. 2019 (experiment A) train it before the encoder.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States, first_pieces
from totune.modules.initialisation import kaiming_
from totune.modules.recurrent import BiLstm
from totune.modules.tag_output import TagOutput, tag_output
from totune.modules.tokens import Tokens
from totune.ranges import Choices, Ints
from totune.tasks.base import Task


class BilstmModule(HeadModule):
    """dropout -> BiLSTM -> first pieces -> dropout -> linear [-> CRF]."""

    def __init__(self, encoder: BiLstm, output: TagOutput, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encoder = encoder
        self.output = output

    def forward(self, states: States) -> Tensor:
        (pieces,) = states.tokens
        encoded = self.encoder(Tokens(self.dropout(pieces.states), pieces.mask))
        words = first_pieces(replace(states, tokens=(Tokens(encoded, pieces.mask),)))
        outputs: Tensor = self.output(words)  # [P, C]
        return outputs

    def losses(self, outputs: Tensor, targets: Tensor, counts: Tensor) -> Tensor | None:
        return self.output.losses(outputs, targets, counts)

    def best(self, outputs: Tensor, counts: Tensor) -> Tensor:
        return self.output.best(outputs, counts)


@HEADS.register("bilstm")
@dataclass(frozen=True)
class Bilstm(Head):
    """A bidirectional LSTM, then each word alone or a CRF.

    Attributes:
        num_layers: of the BiLSTM.
        hidden_size: of each direction.
        dropout: before every layer.
        crf: score whole tag sequences instead of each word alone.
        constrained: the CRF predicts only tag sequences that the tagging scheme allows; training
            sums over all. Without a CRF it does nothing.
        initialisation: of LSTM and linear layer: `default`, PyTorch's, or `kaiming`, as Wang et al.
            start what they stack on BERT (Methodology).
    """

    num_layers: Annotated[Literal[1, 2], Choices((1, 2))] = 2
    hidden_size: Annotated[int, Field(ge=1), Ints(100, 400, log=True)] = 200
    dropout: Dropout = 0.1
    crf: bool = False
    constrained: bool = True
    initialisation: Literal["default", "kaiming"] = "default"

    wants: ClassVar[tuple[InputKind, ...]] = ("words",)

    def build(self, width: int, task: Task) -> BilstmModule:
        encoder = BiLstm(width, self.hidden_size, self.num_layers, self.dropout)
        output = tag_output(
            "bilstm",
            encoder.width,
            task,
            dropout=self.dropout,
            crf=self.crf,
            constrained=self.constrained,
        )
        if self.initialisation == "kaiming":
            for part in (encoder, output.out):
                kaiming_(part)
        return BilstmModule(encoder, output, self.dropout)
