"""The interface between the training loop and what a language model learns from rows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from totune.pretraining.rows import PackedRows


@dataclass(frozen=True)
class StepBatch:
    """The rows of one optimizer step, collated before they are shared out to processes.

    Attributes:
        tensors: inputs by name, [B, ...].
        targets: number of predictions that each loss is the mean of, by the loss's name.
        tokens: number of tokens, without padding and special tokens.
    """

    tensors: Mapping[str, Tensor]
    targets: Mapping[str, int]
    tokens: int


class Objective(nn.Module, ABC):
    """A language model and its losses. Parameters that require a gradient are trained.

    There is no dropout, since a text is read about once: the loop runs the module as it is, with
    dropout off.
    """

    @abstractmethod
    def collate(self, rows: PackedRows, indices: np.ndarray, seed: int) -> StepBatch:
        """The batch of a step.

        A function of its arguments alone: a step that is repeated is the same, and the random
        choices depend neither on the number of processes nor on that of micro-batches.

        Args:
            rows: of text.
            indices: rows of the step, [B].
            seed: decides every random choice.
        """

    @abstractmethod
    def micro_batch(self, batch: StepBatch, indices: np.ndarray) -> dict[str, Tensor]:
        """What `forward` takes for some rows of the batch."""

    @abstractmethod
    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sums over predictions: each loss by its name, and NAME_right, the correct ones.

        Where correct predictions are not counted, there is no NAME_right.
        """

    @abstractmethod
    def countable_forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """As `forward`, through operations whose floating-point operations can be counted."""

    def extend_positions(self, length: int) -> None:
        """Initialises the positions that rows of up to `length` tokens have not reached."""

    @abstractmethod
    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """Metrics of a text by name, "perplexity" among them."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes the encoder, its tokenizer, and what the language model has besides them."""


def perplexity(loss: float) -> float:
    """Of a mean loss in nats: infinite where the result is too large, NaN where the loss is."""
    return math.exp(loss) if loss < 700 else loss * math.inf
