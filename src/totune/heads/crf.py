"""A CRF on the first piece of each word, as Peters et al. 2019 (A.1) fine-tune ELMo for NER."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from totune.heads.base import HEADS, Dropout, Head, HeadModule, InputKind, States, first_pieces
from totune.modules.tag_output import TagOutput, tag_output
from totune.tasks.base import Task


class CrfModule(HeadModule):
    """first pieces -> dropout -> linear -> CRF."""

    def __init__(self, output: TagOutput) -> None:
        super().__init__()
        self.output = output

    def forward(self, states: States) -> Tensor:
        outputs: Tensor = self.output(first_pieces(states))  # [P, C]
        return outputs

    def losses(self, outputs: Tensor, targets: Tensor, counts: Tensor) -> Tensor | None:
        return self.output.losses(outputs, targets, counts)

    def best(self, outputs: Tensor, counts: Tensor) -> Tensor:
        return self.output.best(outputs, counts)


@HEADS.register("crf")
@dataclass(frozen=True)
class Crf(Head):
    """One linear layer on the first piece of each word, and a score for each move between tags.

    Attributes:
        dropout: before the linear layer.
        constrained: predict only tag sequences that the tagging scheme allows; training sums over
            all.
    """

    dropout: Dropout = 0.1
    constrained: bool = True

    wants: ClassVar[tuple[InputKind, ...]] = ("words",)

    def build(self, width: int, task: Task) -> CrfModule:
        output = tag_output(
            "crf", width, task, dropout=self.dropout, crf=True, constrained=self.constrained
        )
        return CrfModule(output)
