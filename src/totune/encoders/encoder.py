"""The one interface to every encoder: ordered blocks, from the embeddings up.

Block 0 embeds, blocks 1..L are layers. An encoder can start from the cached output of any block
(`Cached`) and stop at any block, so a frozen prefix needs to be computed only once.
Shapes: B examples, T word pieces, L layers, H width.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from totune.encoders.adapter_modules import AdapterModules
from totune.inputs.batches import Batch


@dataclass(frozen=True)
class Cached:
    """The output of block `depth` for a batch, computed earlier: states [B, T, H]."""

    depth: int
    states: Tensor


@dataclass(frozen=True)
class LayerStack:
    """Outputs of consecutive blocks, each [B, T, H]; `stack[d]` is the output of block d.

    Attributes:
        first: the depth of `states[0]`.
        states: outputs of blocks first, first + 1, ..., bottom to top.
    """

    first: int
    states: tuple[Tensor, ...]

    def __getitem__(self, depth: int) -> Tensor:
        if not self.first <= depth <= self.last:
            raise IndexError(f"depth {depth} is outside {self.first}..{self.last}")
        return self.states[depth - self.first]

    @property
    def last(self) -> int:
        return self.first + len(self.states) - 1

    @property
    def top(self) -> Tensor:
        return self.states[-1]


class Encoder(nn.Module, ABC):
    """A pretrained text encoder as a stack of blocks.

    Attributes:
        kind: the architecture's name ("bert", "roberta", ...).
        width: H, the size of a hidden state.
        depth: L, the number of layers above the embeddings.
        max_length: the longest input in word pieces.
        inserted: what a strategy has put into it, if anything.
        reads_words: whether its pieces are whole words, whose states no first piece sums up.
    """

    kind: str
    width: int
    depth: int
    max_length: int
    inserted: AdapterModules | None = None
    reads_words: ClassVar[bool] = False

    @property
    def pooler(self) -> nn.Module | None:
        """The pretrained map from the first token's top state [B, H] to a vector [B, H].

        None where the weights hold none: new weights belong to a head.
        """
        return None

    @abstractmethod
    def encode(
        self, batch: Batch, start: Cached | None = None, stop: int | None = None
    ) -> LayerStack:
        """The outputs of every block from `start` (or the embeddings) up to `stop` (or the top).

        Args:
            batch: word pieces and masks; its `input_ids` are not read when `start` is given.
            start: the cached output to continue from; it is the first element of the result.
            stop: the last depth to compute; None for the top.
        """

    @abstractmethod
    def block_modules(self, depth: int) -> Mapping[str, nn.Module]:
        """The modules that hold block `depth`'s parameters, by a stable name within the encoder.

        Modules that every layer shares (relative position embeddings, say) belong to block 0, so
        that nothing counts as frozen below something that trains. With shared layers (ALBERT),
        every depth lists the same modules.
        """

    def block_parameters(self, depth: int) -> Iterator[tuple[str, nn.Parameter]]:
        """The named parameters of block `depth`."""
        for prefix, module in self.block_modules(depth).items():
            for name, parameter in module.named_parameters():
                yield f"{prefix}.{name}", parameter

    def frozen_depth(self) -> int:
        """The deepest d such that blocks 0..d hold no trainable parameter; -1 if block 0 trains."""
        for depth in range(self.depth + 1):
            if any(parameter.requires_grad for _, parameter in self.block_parameters(depth)):
                return depth - 1
        return self.depth

    def freeze_modes(self, frozen_depth: int) -> None:
        """Puts blocks 0..frozen_depth in eval mode: frozen blocks have no dropout."""
        for depth in range(frozen_depth + 1):
            for module in self.block_modules(depth).values():
                module.eval()

    def read_first_token_only(self) -> None:
        """Told where of the top layer nothing but the first token is read, which may save work.

        The top block's output may then hold that token alone, [B, 1, H].
        """

    def prepare_training(self, device: torch.device) -> None:
        """Told before training on `device`, so that faster arithmetic can be chosen for it."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of the configuration and the weights as they are now."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes configuration and weights into a folder that is there."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
