"""The frozen encoder's sentence vectors under a linear model: the cheapest use of an encoder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.baselines import saving
from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.data.examples import Examples
from totune.linear_model import LinearModel, fit_linear
from totune.ranges import Choices, Floats
from totune.tasks.base import Task


@BASELINES.register("sentence-embedding")
@dataclass(frozen=True)
class SentenceEmbedding(Baseline):
    """Mean-pooled top-layer vectors and logistic regression (ridge for scores).

    The encoder reads both texts of a pair as one sequence.

    Attributes:
        normalize: scale every vector to length 1, as sentence encoders are trained to be used.
        C: inverse strength of the L2 penalty.
    """

    normalize: Annotated[bool, Choices((True, False))] = True
    C: Annotated[float, Field(gt=0), Floats(0.01, 100.0, log=True)] = 1.0

    needs_encoder: ClassVar[bool] = True

    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        model = fit_linear(self.vectors(train, embed), targets, task, self.C)
        return FittedEmbedding(self, embed, model)

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        _, arrays = saving.read(folder, self)
        return FittedEmbedding(self, embed, LinearModel.from_arrays(arrays, task))

    def vectors(self, examples: Examples, embed: Embed | None) -> NDArray[np.float64]:
        """The vectors [N, H] that the linear model reads.

        Raises:
            ValueError: if there is no encoder to ask.
        """
        if embed is None:
            raise ValueError(f"{self.name} needs an encoder")
        found = np.asarray(embed(examples), dtype=np.float64)
        if not self.normalize:
            return found
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True)
class FittedEmbedding(FittedBaseline):
    """The linear model; the encoder stays outside."""

    baseline: SentenceEmbedding
    embed: Embed | None
    model: LinearModel

    def outputs(self, examples: Examples) -> NDArray[Any]:
        return self.model.predict(self.baseline.vectors(examples, self.embed))

    @property
    def parameters(self) -> int:
        return self.model.parameters

    def save(self, folder: Path) -> None:
        saving.write(folder, self.baseline, {}, self.model.arrays())
