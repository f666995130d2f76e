"""What a language model learns from rows: the interface that the loop knows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from totune.pretraining.rows import Rows


@dataclass(frozen=True)
class Drawn:
    """What one step reads, drawn whole before it is shared out.

    Attributes:
        tensors: by name, a row per row of text.
        targets: how many predictions each loss is the mean of, by the loss's name.
        tokens: pieces that are read, padding and special ones left out.
    """

    tensors: Mapping[str, Tensor]
    targets: Mapping[str, int]
    tokens: int


class Objective(nn.Module, ABC):
    """A language model and what it is asked. Its parameters that need a gradient are trained.

    There is no dropout, since a text is read about once: the loop runs the module as it is, with
    dropout off.
    """

    @abstractmethod
    def draw(self, rows: Rows, which: np.ndarray, seed: int) -> Drawn:
        """What a step reads.

        A function of its arguments alone, so that a step that is repeated is the same, and neither
        processes nor parts of a step change what chance decides.

        Args:
            rows: of text.
            which: of them, [B].
            seed: decides what is left to chance.
        """

    @abstractmethod
    def part(self, drawn: Drawn, own: np.ndarray) -> dict[str, Tensor]:
        """What `forward` takes for some of the drawn rows."""

    @abstractmethod
    def forward(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sums over a part's predictions: each loss by its name, and NAME_right, how many hit.

        Where hits are not counted, there is no NAME_right.
        """

    def turn(self, length: int) -> None:
        """Told when rows have had up to `length` pieces so far, and longer ones begin."""

    @abstractmethod
    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """What is told of a text, by name, "perplexity" among it."""

    @abstractmethod
    def count(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        """As `forward`, through operations whose cost can be counted."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes the encoder, its tokenizer, and what the language model has beside them."""


def perplexity(loss: float) -> float:
    """Of a mean loss in nats; infinite where it has no float, and no number where it has none."""
    return math.exp(loss) if loss < 700 else loss * math.inf
