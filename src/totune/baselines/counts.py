"""Word counts under a linear model."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from totune.baselines.base import BASELINES
from totune.baselines.text_features import SparseBaseline, Vectorizer


@BASELINES.register("counts")
@dataclass(frozen=True)
class Counts(SparseBaseline):
    """Token counts and logistic regression (ridge for scores): Hart, section 4.1.

    Attributes:
        max_features: keep the most frequent only; none for all.
    """

    max_features: Annotated[int, Field(ge=1)] | None = None

    def vectorizer(self) -> Vectorizer:
        from sklearn.feature_extraction.text import CountVectorizer  # takes a second to load

        return CountVectorizer(ngram_range=(1, self.ngrams), max_features=self.max_features)
