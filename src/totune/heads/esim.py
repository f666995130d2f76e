"""ESIM, the enhanced sequential inference model (Chen et al. 2017), for classes and scores.

The head with which Peters et al. 2019 (A.1) read pairs from a frozen encoder.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.attention import enhanced_pair, mean_and_max
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens
from totune.ranges import Ints
from totune.tasks.base import Task


class EsimModule(HeadModule):
    """BiLSTM -> attention and enhancement -> projection -> BiLSTM -> pooling -> dense -> out.

    Both texts go through the same weights.

    Args:
        width: H of the states read.
        outputs: C.
        encoder_size: of each direction of the BiLSTM over a text.
        projection_size: of the enhanced states after the projection.
        inference_size: of each direction of the BiLSTM over the projected states.
        dense_size: of the layer before the output.
        dropout: on what each BiLSTM and each of the last two layers reads. What a BiLSTM reads
            loses the same features in all tokens of a text (Gal and Ghahramani 2016).
    """

    def __init__(
        self,
        width: int,
        outputs: int,
        *,
        encoder_size: int,
        projection_size: int,
        inference_size: int,
        dense_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.text_dropout = nn.Dropout1d(dropout)
        self.dropout = nn.Dropout(dropout)
        self.encoder = BiLstm(width, encoder_size)
        self.projection = nn.Linear(4 * self.encoder.width, projection_size)
        self.inference = BiLstm(projection_size, inference_size)
        self.dense = nn.Linear(4 * self.inference.width, dense_size)
        self.out = nn.Linear(dense_size, outputs)
        for layer in self.modules():
            initialise(layer)

    def forward(self, states: States) -> Tensor:
        first, second = (self.encode(tokens) for tokens in states.tokens)
        inferred = (self.infer(self.project(text)) for text in enhanced_pair(first, second))
        outputs: Tensor = self.out(self.dropout(self.compare(*inferred)))  # [B, C]
        return outputs

    def encode(self, tokens: Tokens) -> Tokens:
        """A text in its own context, [B, T, H] -> [B, T, 2 * encoder_size]."""
        return Tokens(self.encoder(self._thinned(tokens)), tokens.mask)

    def project(self, enhanced: Tokens) -> Tokens:
        """[B, T, 8 * encoder_size] -> [B, T, projection_size]."""
        return Tokens(torch.relu(self.projection(enhanced.states)), enhanced.mask)

    def infer(self, projected: Tokens) -> Tokens:
        """[B, T, projection_size] -> [B, T, 2 * inference_size]."""
        return Tokens(self.inference(self._thinned(projected)), projected.mask)

    def compare(self, first: Tokens, second: Tokens) -> Tensor:
        """Both inferred texts -> [B, dense_size]."""
        return torch.tanh(self.dense(self.dropout(mean_and_max(first, second))))

    def _thinned(self, tokens: Tokens) -> Tokens:
        features = tokens.states.transpose(1, 2)  # [B, H, T]
        return Tokens(self.text_dropout(features).transpose(1, 2), tokens.mask)


def initialise(layer: nn.Module) -> None:
    """Starts one layer much as AllenNLP's ESIM does, which Peters et al. 2019 used.

    Xavier weights (Glorot and Bengio 2010), orthogonal recurrent weights (Saxe et al. 2014; here
    each gate's are), zero biases but for the forget gates' 1 (Jozefowicz et al. 2015).
    """
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    elif isinstance(layer, nn.LSTM):
        weight_ih, weight_hh, bias_ih, bias_hh = layer.parameters()
        with torch.no_grad():
            nn.init.xavier_uniform_(weight_ih)
            for gate in weight_hh.chunk(4):
                nn.init.orthogonal_(gate)
            nn.init.zeros_(bias_ih)
            nn.init.zeros_(bias_hh)
            bias_hh.chunk(4)[1].fill_(1.0)  # gates: input, forget, candidate, output


@HEADS.register("esim")
@dataclass(frozen=True)
class Esim(Head):
    """Two texts compared token by token, then as sequences.

    The defaults are those of Chen et al. 2017 (section 4).

    Attributes:
        hidden_size: of each direction of both BiLSTMs, of the projection and of the last layer.
        dropout: on what each BiLSTM and each of the last two layers reads.
    """

    hidden_size: Annotated[int, Field(ge=1), Ints(100, 600, log=True)] = 300
    dropout: Dropout = 0.5

    wants: ClassVar[tuple[InputKind, ...]] = ("pair",)

    def build(self, width: int, task: Task) -> EsimModule:
        return EsimModule(
            width,
            task.outputs,
            encoder_size=self.hidden_size,
            projection_size=self.hidden_size,
            inference_size=self.hidden_size,
            dense_size=self.hidden_size,
            dropout=self.dropout,
        )
