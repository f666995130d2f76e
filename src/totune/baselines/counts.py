"""Word counts under a linear model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from sklearn.feature_extraction.text import CountVectorizer

from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.baselines.text_features import fit_sparse, load_sparse
from totune.data.examples import Examples
from totune.tasks.base import Task


@BASELINES.register("counts")
@dataclass(frozen=True)
class Counts(Baseline):
    """Token counts and logistic regression (ridge for scores): Hart, section 4.1.

    Attributes:
        ngrams: the longest run of words that counts as a feature.
        max_features: keep the most frequent only; none for all.
        C: inverse strength of the L2 penalty.
    """

    ngrams: Annotated[int, Field(ge=1)] = 1
    max_features: Annotated[int, Field(ge=1)] | None = None
    C: Annotated[float, Field(gt=0)] = 1.0

    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        return fit_sparse(self, self._vectorizer(), train, targets, task, self.C)

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        return load_sparse(self, self._vectorizer(), folder, task)

    def _vectorizer(self) -> CountVectorizer:
        return CountVectorizer(ngram_range=(1, self.ngrams), max_features=self.max_features)
