"""What every task network is: options as a frozen dataclass, a module built from them.

A member says what it reads (`wants`); the model hands it `States`.
Shapes: B rows, T word pieces, H width, S sentences, W words, P predicted positions (one per row, or
one per word where words are tagged), C outputs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.inputs.batches import TokenIndex
from totune.modules.tokens import Tokens
from totune.ranges import Floats
from totune.registry import Member, Registry
from totune.tasks.base import Task

InputKind = Literal["pooled", "pooled-pair", "tokens", "pair", "words"]
Dropout = Annotated[float, Field(ge=0, lt=1), Floats(0.0, 0.5)]


@dataclass(frozen=True)
class States:
    """What a head reads of a batch; which fields are filled follows from what it wants.

    | wants | `vectors` | `tokens` | `words` |
    |---|---|---|---|
    | pooled | one [B, H] | - | - |
    | pooled-pair | two [B, H]: first and second text, encoded apart | - | - |
    | tokens | - | all word pieces of the row, special ones too (the first is [CLS]) | - |
    | pair | - | two: word pieces of the first and of the second text | - |
    | words | - | each sentence's word pieces, without special ones | first piece of each word |
    """

    vectors: tuple[Tensor, ...] = ()
    tokens: tuple[Tokens, ...] = ()
    words: TokenIndex | None = None


class HeadModule(nn.Module, ABC):
    """A built head."""

    @abstractmethod
    def forward(self, states: States) -> Tensor:
        """What the head wants -> outputs [P, C]: one row per example, or per word in order."""

    def begin_at(self, outputs: Tensor) -> None:
        """Makes `outputs` [C] the bias of the last layer, which heads call `out`."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                last = f".{name}".endswith(".out.bias")
                if last and parameter.shape == outputs.shape:
                    parameter.copy_(outputs)

    def linear_layer(self) -> nn.Linear | None:
        """The layer that gives the outputs, where nothing else trains in the head; else None.

        Over a frozen encoder such a head is a convex problem.
        """
        return None

    def linear_inputs(self, states: States) -> Tensor:
        """What the linear layer reads, [P, F]; only where there is one. Dropout is left out."""
        raise NotImplementedError

    def losses(self, outputs: Tensor, targets: Tensor, counts: Tensor) -> Tensor | None:
        """The loss of each position, or None where the task's own loss is used.

        Args:
            outputs: [P, C], from `forward`.
            targets: classes [P]; below 0 where training knows no such class.
            counts: how many positions each row has, [B] with sum P.
        """
        return None

    def best(self, outputs: Tensor, counts: Tensor) -> Tensor:
        """Outputs [P, C] of which the largest of each position is the prediction.

        Heads that decode whole sequences override this.
        """
        return outputs


class Head(Member, ABC):
    """A kind of head; its fields are its options.

    Attributes:
        wants: what it reads; with "words" among them it can tag.
    """

    name: ClassVar[str]
    wants: ClassVar[tuple[InputKind, ...]]

    @abstractmethod
    def build(self, width: int, task: Task) -> HeadModule:
        """The module for inputs of `width` and `task.outputs` numbers per position."""


def first_pieces(states: States) -> Tensor:
    """The state of each word's first piece, over all sentences in order: [P, H]."""
    words, pieces = states.words, states.tokens[0]
    assert words is not None, "only heads that want words ask for them"
    at = words.at.unsqueeze(-1).expand(-1, -1, pieces.states.shape[-1])
    return pieces.states.gather(1, at)[words.mask]


HEADS: Registry[Head] = Registry("head", "totune.heads")
