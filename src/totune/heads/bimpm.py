"""BiMPM: bilateral multi-perspective matching (Wang, Hamza and Florian 2017) on an encoder.

The network that Wang et al. 2019 stack on BERT for sentence similarity.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.aggregation import FeedForward, LastStates
from totune.modules.contexts import ContextMatching
from totune.modules.initialisation import kaiming_
from totune.ranges import Ints
from totune.tasks.base import Task


class BimpmModule(HeadModule):
    """context BiLSTM -> matching -> aggregation BiLSTM -> two fully connected layers."""

    def __init__(self, options: "Bimpm", width: int, outputs: int) -> None:
        super().__init__()
        hidden_size, dropout = options.hidden_size, options.dropout
        self.matching = ContextMatching(width, hidden_size, options.num_perspectives, dropout)
        self.aggregation = LastStates(self.matching.width, hidden_size, dropout)
        self.classifier = FeedForward(self.aggregation.width, 2 * hidden_size, outputs, dropout)
        kaiming_(self)

    def forward(self, states: States) -> Tensor:
        matches = self.matching(*states.tokens)
        outputs: Tensor = self.classifier(self.aggregation(*matches))  # [B, C]
        return outputs


@HEADS.register("bimpm")
@dataclass(frozen=True)
class Bimpm(Head):
    """Every token of either text matched with the other in four ways from several perspectives.

    One BiLSTM reads both texts, and one aggregates the matches of both. Choices the papers leave
    open: a ReLU between the last two layers, the first of which has 2 * hidden_size units.

    Attributes:
        num_perspectives: of each of the four matchings, in each of two directions.
        hidden_size: of each direction of both BiLSTMs; 100 in Wang, Hamza and Florian 2017.
        dropout: on the input of every layer but the matching, whose cosines it would make smaller
            in training than in prediction.
    """

    num_perspectives: Annotated[int, Field(ge=1), Ints(10, 40, log=True)] = 20
    hidden_size: Annotated[int, Field(ge=1), Ints(50, 200, log=True)] = 100
    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("pair",)

    def build(self, width: int, task: Task) -> BimpmModule:
        return BimpmModule(self, width, task.outputs)
