"""Sparse features of texts under a linear model; what `tf-idf`, `counts` and `hashing` share.

Shared by the members of this folder; itself no member.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse

from totune.baselines import saving
from totune.baselines.base import Baseline, Embed, FittedBaseline
from totune.data.examples import Examples
from totune.errors import DataError
from totune.linear_model import LinearModel, fit_linear
from totune.ranges import Floats, Ints
from totune.tasks.base import Task

Vectorizer = Any  # a fitted or unfitted text vectorizer of scikit-learn, which ships no types


@dataclass(frozen=True)
class FittedSparse(FittedBaseline):
    """A fitted vectorizer and the linear model on its features."""

    baseline: Baseline
    vectorizer: Vectorizer
    model: LinearModel

    def outputs(self, examples: Examples) -> NDArray[Any]:
        return self.model.predict(features(self.vectorizer, examples))

    @property
    def parameters(self) -> int:
        return self.model.parameters

    def save(self, folder: Path) -> None:
        arrays = self.model.arrays()
        if hasattr(self.vectorizer, "idf_"):
            arrays["idf"] = self.vectorizer.idf_
        saving.write(folder, self.baseline, {"terms": _terms(self.vectorizer)}, arrays)


@dataclass(frozen=True)
class SparseBaseline(Baseline):
    """A vectorizer of scikit-learn under a linear model.

    Attributes:
        ngrams: the longest run of words that counts as a feature.
        C: inverse strength of the L2 penalty.
    """

    ngrams: Annotated[int, Field(ge=1), Ints(1, 3)] = 1
    C: Annotated[float, Field(gt=0), Floats(0.01, 100.0, log=True)] = 1.0

    @abstractmethod
    def vectorizer(self) -> Vectorizer:
        """An unfitted vectorizer with this baseline's options."""

    def fit(
        self, train: Examples, targets: NDArray[Any], task: Task, seed: int, embed: Embed | None
    ) -> FittedSparse:
        """Fits vectorizer and linear model on training rows.

        Raises:
            DataError: if no text holds a word.
        """
        vectorizer = self.vectorizer()
        try:
            vectorizer.fit([*train.texts, *(train.pairs or ())])
            found = features(vectorizer, train)
        except ValueError as error:
            if "vocabulary" not in str(error):
                raise
            raise _no_words(self, len(train)) from None
        if not found.nnz:
            raise _no_words(self, len(train))
        return FittedSparse(self, vectorizer, fit_linear(found, targets, task, self.C))

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedSparse:
        """Reads what `FittedSparse.save` wrote into an unfitted vectorizer."""
        vectorizer = self.vectorizer()
        facts, arrays = saving.read(folder, self)
        if facts["terms"]:
            vectorizer.set_params(vocabulary=facts["terms"])
        if "idf" in arrays:
            vectorizer.idf_ = arrays["idf"]
        return FittedSparse(self, vectorizer, LinearModel.from_arrays(arrays, task))


def features(vectorizer: Vectorizer, examples: Examples) -> sparse.csr_matrix:
    """Features [N, F] of single texts, [N, 4 F + 1] of pairs.

    A pair of vectors u and v, in one vocabulary, becomes [u, v, |u - v|, u * v], as Conneau et al.
    2017 (InferSent) match sentences, and their cosine: how much they agree, whatever the words.
    """
    first = _transform(vectorizer, examples.texts)
    if examples.pairs is None:
        return first
    second = _transform(vectorizer, examples.pairs)
    products = first.multiply(second)
    cosine = sparse.csr_matrix(products.sum(axis=1) / (_lengths(first) * _lengths(second)))
    parts = [first, second, abs(first - second), products, cosine]
    return sparse.hstack(parts, format="csr")


def _lengths(vectors: sparse.csr_matrix) -> NDArray[np.float64]:
    """The length of each row, [N, 1]; 1 for a row of zeros, whose cosine is then 0."""
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)))
    return np.where(lengths > 0, lengths, 1.0)


def _transform(vectorizer: Vectorizer, texts: Sequence[str]) -> sparse.csr_matrix:
    return vectorizer.transform(texts).astype(np.float64).tocsr()


def _terms(vectorizer: Vectorizer) -> list[str]:
    """The vocabulary in the order of its columns; none where features are hashed."""
    places = getattr(vectorizer, "vocabulary_", {})
    return sorted(places, key=places.__getitem__)


def _no_words(baseline: Baseline, rows: int) -> DataError:
    return DataError(
        f"{baseline.name} counts words of two or more letters or digits, and none of the {rows:,} "
        "training rows holds one. Check which column is read as text."
    )
