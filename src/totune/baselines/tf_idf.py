"""Words weighted by how rare they are, under a linear model."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from totune.baselines.base import BASELINES
from totune.baselines.text_features import SparseBaseline, Vectorizer


@BASELINES.register("tf-idf")
@dataclass(frozen=True)
class TfIdf(SparseBaseline):
    """TF-IDF features and logistic regression (ridge for scores): Hart, section 4.1.

    Attributes:
        max_features: keep the most frequent only; none for all.
    """

    max_features: Annotated[int, Field(ge=1)] | None = None

    def vectorizer(self) -> Vectorizer:
        from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to load

        return TfidfVectorizer(ngram_range=(1, self.ngrams), max_features=self.max_features)
