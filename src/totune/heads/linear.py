"""The light head: dropout and one linear layer, or two with an activation between.

One layer is BERT's sentence representation -> softmax (Peters et al. 2019, A.2); two fully
connected layers, on [CLS] or on each word, are the finetune-only head of Wang et al. 2019.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States, first_pieces
from totune.tasks.base import Task

Activation = Literal["tanh", "relu", "gelu"]
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}
INIT_STD = 0.02  # BERT's initializer_range


class LinearModule(HeadModule):
    """dropout -> [dense -> activation -> dropout ->] out."""

    def __init__(self, options: "Linear", width: int, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(options.dropout)
        self.dense = nn.Linear(width, width) if options.layers == 2 else None
        self.activation = ACTIVATIONS[options.activation]()
        self.out = nn.Linear(width, outputs)
        for layer in (self.dense, self.out):
            if layer is not None:
                nn.init.normal_(layer.weight, std=INIT_STD)
                nn.init.zeros_(layer.bias)

    def linear_layer(self) -> nn.Linear | None:
        return self.out if self.dense is None else None

    def linear_inputs(self, states: States) -> Tensor:
        return states.vectors[0] if states.words is None else first_pieces(states)  # [P, H]

    def forward(self, states: States) -> Tensor:
        vectors = self.dropout(self.linear_inputs(states))
        if self.dense is not None:
            vectors = self.dropout(self.activation(self.dense(vectors)))
        outputs: Tensor = self.out(vectors)  # [P, C]
        return outputs


@HEADS.register("linear")
@dataclass(frozen=True)
class Linear(Head):
    """One or two fully connected layers on a pooled vector, or on the first piece of each word.

    Attributes:
        layers: 1 or 2.
        dropout: before each layer.
        activation: between two layers.
    """

    layers: Literal[1, 2] = 1
    dropout: Dropout = 0.1
    activation: Activation = "tanh"

    wants: ClassVar[tuple[InputKind, ...]] = ("pooled", "words")

    def build(self, width: int, task: Task) -> LinearModule:
        return LinearModule(self, width, task.outputs)
