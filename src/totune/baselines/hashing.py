"""Hashed word counts under a linear model: no vocabulary to store."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from sklearn.feature_extraction.text import HashingVectorizer

from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.baselines.text_features import fit_sparse, load_sparse
from totune.data.examples import Examples
from totune.tasks.base import Task


@BASELINES.register("hashing")
@dataclass(frozen=True)
class Hashing(Baseline):
    """Hashed token counts and logistic regression (ridge for scores): Hart, section 4.1.

    Counts are scaled to unit length, and half of the hashes count negatively so that collisions
    cancel out on average (Weinberger et al. 2009).

    Attributes:
        ngrams: the longest run of words that counts as a feature.
        n_features: how many hash values there are.
        C: inverse strength of the L2 penalty.
    """

    ngrams: Annotated[int, Field(ge=1)] = 1
    n_features: Annotated[int, Field(ge=2, le=2**30)] = 2**20
    C: Annotated[float, Field(gt=0)] = 1.0

    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        return fit_sparse(self, self._vectorizer(), train, targets, task, self.C)

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        return load_sparse(self, self._vectorizer(), folder, task)

    def _vectorizer(self) -> HashingVectorizer:
        return HashingVectorizer(ngram_range=(1, self.ngrams), n_features=self.n_features)
