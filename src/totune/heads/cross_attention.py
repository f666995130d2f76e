"""Attention between two texts and ESIM's pooling, without parameters of their own.

The head with which Peters et al. 2019 (section 3 and A.2) fine-tune an LSTM encoder on pairs:
bi-attention between all words of both texts, the "enhanced" pooling of Chen et al. 2017, softmax.
Their Table 3 compares it with no bi-attention, where nothing but the linear layer sees both texts.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States
from totune.modules.attention import enhanced_pair, mean_and_max
from totune.tasks.base import Task


class CrossAttentionModule(HeadModule):
    """[attention and enhancement ->] pooling -> dropout -> out."""

    def __init__(self, options: "CrossAttention", width: int, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(options.dropout)
        self.attend = options.attend
        self.out = nn.Linear((16 if options.attend else 4) * width, outputs)
        nn.init.xavier_uniform_(self.out.weight)  # Glorot and Bengio 2010, as in ESIM
        nn.init.zeros_(self.out.bias)

    def forward(self, states: States) -> Tensor:
        first, second = states.tokens
        read = enhanced_pair(first, second) if self.attend else (first, second)
        pooled = mean_and_max(*read)  # [B, 16H], or [B, 4H] without attention
        outputs: Tensor = self.out(self.dropout(pooled))  # [B, C]
        return outputs


@HEADS.register("cross-attention")
@dataclass(frozen=True)
class CrossAttention(Head):
    """A linear layer on [mean; max] of [x; x~; x - x~; x * x~] over both texts.

    x~ is what a token x finds in the other text.

    Attributes:
        dropout: before the linear layer.
        attend: whether tokens attend to the other text; otherwise the layer reads [mean; max] of x.
    """

    dropout: Dropout = 0.1
    attend: bool = True

    wants: ClassVar[tuple[InputKind, ...]] = ("pair",)

    def build(self, width: int, task: Task) -> CrossAttentionModule:
        return CrossAttentionModule(self, width, task.outputs)
