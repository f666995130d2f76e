"""What every task network is: options as a frozen dataclass, a module built from them.

A member says what it reads (`wants`): "pooled" vectors [B, H] or "tokens" [B, T, H].
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor, nn

from totune.data.batches import Batch
from totune.registry import Registry

Wants = Literal["pooled", "tokens"]


class HeadModule(nn.Module, ABC):
    """A built head."""

    @abstractmethod
    def forward(self, states: Tensor, batch: Batch) -> Tensor:
        """States [B, H] or [B, T, H] (as the head wants) and their batch -> outputs [B, C]."""


class Head(ABC):
    """A kind of head; its fields are its options."""

    name: ClassVar[str]
    wants: ClassVar[Wants]

    @abstractmethod
    def build(self, width: int, outputs: int) -> HeadModule:
        """The module for inputs of `width` and `outputs` numbers per example."""


HEADS: Registry[Head] = Registry("head", "totune.heads")
