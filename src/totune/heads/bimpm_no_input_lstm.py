"""BiMPM without its first BiLSTM (Wang et al. 2019, experiment C).

Wang et al. 2019 saw almost no difference to BiMPM, since the encoder has read the context already.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.aggregation import FeedForward, LastStates
from totune.modules.initialisation import kaiming_
from totune.modules.matching import BilateralMatching
from totune.ranges import Ints
from totune.tasks.base import Task


class BimpmNoInputLstmModule(HeadModule):
    """matching -> aggregation BiLSTM -> two fully connected layers."""

    def __init__(self, options: "BimpmNoInputLstm", width: int, outputs: int) -> None:
        super().__init__()
        hidden_size, dropout = options.hidden_size, options.dropout
        self.matching = BilateralMatching(width, options.num_perspectives)
        self.aggregation = LastStates(self.matching.width, hidden_size, dropout)
        self.classifier = FeedForward(self.aggregation.width, 2 * hidden_size, outputs, dropout)
        kaiming_(self)

    def forward(self, states: States) -> Tensor:
        first, second = states.tokens
        matches = self.matching((first, second), (first, second))
        outputs: Tensor = self.classifier(self.aggregation(*matches))  # [B, C]
        return outputs


@HEADS.register("bimpm-no-input-lstm")
@dataclass(frozen=True)
class BimpmNoInputLstm(Head):
    """BiMPM whose matching layer reads the encoder's states.

    The paper does not say what takes the place of the two contexts. Here the same states stand for
    both: "forward" matching is against the other text's last token, "backward" matching against its
    first, each with perspectives of its own, so a token still has 8 * num_perspectives matches.

    Attributes:
        num_perspectives: of each of the four matchings, in each of two directions.
        hidden_size: of each direction of the aggregation BiLSTM.
        dropout: on the input of every layer but the matching, whose cosines it would make smaller
            in training than in prediction.
    """

    num_perspectives: Annotated[int, Field(ge=1), Ints(10, 40, log=True)] = 20
    hidden_size: Annotated[int, Field(ge=1), Ints(50, 200, log=True)] = 100
    dropout: Dropout = 0.1

    wants: ClassVar[tuple[InputKind, ...]] = ("pair",)

    def build(self, width: int, task: Task) -> BimpmNoInputLstmModule:
        return BimpmNoInputLstmModule(self, width, task.outputs)
