"""Hashed word counts under a linear model: no vocabulary to store."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from totune.baselines.base import BASELINES
from totune.baselines.text_features import SparseBaseline, Vectorizer


@BASELINES.register("hashing")
@dataclass(frozen=True)
class Hashing(SparseBaseline):
    """Hashed token counts and logistic regression (ridge for scores): Hart, section 4.1.

    Counts are scaled to unit length, and half of the hashes count negatively so that collisions
    cancel out on average (Weinberger et al. 2009).

    Attributes:
        n_features: how many hash values there are.
    """

    n_features: Annotated[int, Field(ge=2, le=2**30)] = 2**20

    def vectorizer(self) -> Vectorizer:
        from sklearn.feature_extraction.text import HashingVectorizer  # takes a second to load

        return HashingVectorizer(ngram_range=(1, self.ngrams), n_features=self.n_features)
