"""What every baseline is: counts, or features without training under a linear model.

A baseline stands in a study like a strategy: same splits, same metrics, same records.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np

from totune.data.examples import Examples
from totune.registry import Member, Registry
from totune.tasks.base import Task

Embed = Callable[[Examples], np.ndarray]  # rows -> vectors [N, H] of the frozen encoder


class FittedBaseline(ABC):
    """A trained baseline."""

    @abstractmethod
    def outputs(self, examples: Examples) -> np.ndarray:
        """Outputs as a head would give them, so that the task can decode them.

        Returns:
            [P, C], a row per example; per word, in order, where words are tagged.
        """

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers were trained."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes plain data (JSON and safetensors, never a pickle)."""


class Baseline(Member, ABC):
    """A kind of baseline; its fields are its options.

    Attributes:
        tasks: the names of the tasks it can do.
        needs_encoder: whether it reads vectors of the encoder.
        reads_text: whether its answer depends on the row; one that does not is constant by nature.
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ("classification", "multi-label", "regression")
    needs_encoder: ClassVar[bool] = False
    reads_text: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.name

    @abstractmethod
    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        """Trains on rows and their `task.targets`; `embed` is given when `needs_encoder`."""

    @abstractmethod
    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        """Reads what `FittedBaseline.save` wrote."""


BASELINES: Registry[Baseline] = Registry("baseline", "totune.baselines")
