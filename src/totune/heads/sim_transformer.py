"""Sim-Transformer (Wang et al. 2019, experiment C): BiMPM aggregated by a transformer."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.aggregation import FeedForward, TransformerMaxima
from totune.modules.contexts import ContextMatching
from totune.modules.initialisation import kaiming_
from totune.ranges import Ints
from totune.tasks.base import Task

NUM_HEADS = 8  # as in Vaswani et al. 2017; divides the matching layer's 8 * num_perspectives


class SimTransformerModule(HeadModule):
    """context BiLSTM -> matching -> transformer, maxima -> two fully connected layers."""

    def __init__(self, options: "SimTransformer", width: int, outputs: int) -> None:
        super().__init__()
        hidden_size, dropout = options.hidden_size, options.dropout
        self.matching = ContextMatching(width, hidden_size, options.num_perspectives, dropout)
        self.aggregation = TransformerMaxima(
            self.matching.width, NUM_HEADS, options.num_layers, dropout
        )
        self.classifier = FeedForward(self.aggregation.width, 2 * hidden_size, outputs, dropout)
        kaiming_(self)

    def forward(self, states: States) -> Tensor:
        matches = self.matching(*states.tokens)
        outputs: Tensor = self.classifier(self.aggregation(*matches))  # [B, C]
        return outputs


@HEADS.register("sim-transformer")
@dataclass(frozen=True)
class SimTransformer(Head):
    """BiMPM with a transformer in place of its aggregation BiLSTM.

    The paper names this one change to BiMPM, so the context BiLSTM stays. Choices it leaves open:
    a linear layer takes the place of the transformer's embeddings (width 8 * num_perspectives, 8
    attention heads) and sinusoids are added; layers are pre-norm with an inner layer four times as
    wide; a text is the maxima over its tokens; a ReLU stands between the last two layers.

    Attributes:
        num_perspectives: of each of the four matchings, in each of two directions.
        hidden_size: of each direction of the context BiLSTM.
        num_layers: of the transformer.
        dropout: on the encoder's states, on what a transformer's layer adds, and before the last
            two layers; none on what is matched, whose cosines it would make smaller in training
            than in prediction.
    """

    num_perspectives: Annotated[int, Field(ge=1), Ints(10, 40, log=True)] = 20
    hidden_size: Annotated[int, Field(ge=1), Ints(50, 200, log=True)] = 100
    num_layers: Annotated[int, Field(ge=1), Ints(1, 3)] = 2
    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("pair",)

    def build(self, width: int, task: Task) -> SimTransformerModule:
        return SimTransformerModule(self, width, task.outputs)
