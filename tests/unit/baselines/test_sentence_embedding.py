import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from tests.unit.baselines.samples import NEW, PAIRS, SCORES, TWO, embed, predicted

from totune.baselines.base import BASELINES
from totune.data.examples import Examples
from totune.errors import ModelError
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression


def test_classification_is_logistic_regression_on_unit_vectors():
    task = Classification.from_examples(TWO)
    plain = make_pipeline(Normalizer(), LogisticRegression(C=3.0, tol=1e-9, max_iter=5000))
    plain.fit(embed(TWO).astype(np.float64), list(TWO.labels))
    baseline = BASELINES.create("sentence-embedding", {"C": 3.0})
    outputs = baseline.fit(TWO, task.targets(TWO.labels), task, 0, embed).outputs(NEW)
    np.testing.assert_allclose(np.exp(outputs), plain.predict_proba(embed(NEW)), atol=1e-5)


def test_regression_is_ridge_on_the_vectors():
    task = Regression.from_examples(SCORES)
    plain = Ridge(alpha=0.5).fit(embed(SCORES).astype(np.float64), list(SCORES.labels))
    baseline = BASELINES.create("sentence-embedding", {"normalize": False})
    fitted = baseline.fit(SCORES, task.targets(SCORES.labels), task, 0, embed)
    np.testing.assert_allclose(
        predicted(task, fitted.outputs(NEW)), plain.predict(embed(NEW)), rtol=1e-5
    )
    assert fitted.parameters == 26 + 1


def test_pairs_are_matched_by_difference_and_product_of_the_texts_own_vectors():
    assert PAIRS.pairs is not None
    first, second = (
        Normalizer().transform(embed(Examples(texts)).astype(np.float64))
        for texts in (PAIRS.texts, PAIRS.pairs)
    )
    features = np.hstack([np.abs(first - second), first * second])  # [N, 2 H]
    task = Classification.from_examples(PAIRS)
    plain = LogisticRegression(tol=1e-9, max_iter=5000).fit(features, list(PAIRS.labels))
    baseline = BASELINES.create("sentence-embedding")
    outputs = baseline.fit(PAIRS, task.targets(PAIRS.labels), task, 0, embed).outputs(PAIRS)
    np.testing.assert_allclose(np.exp(outputs), plain.predict_proba(features), atol=1e-5)


def test_a_model_of_other_vectors_is_refused():
    task = Classification.from_examples(TWO)
    single = BASELINES.create("sentence-embedding").fit(
        TWO, task.targets(TWO.labels), task, 0, embed
    )
    with pytest.raises(
        ModelError, match=r"reads 26 numbers per row, and these rows give 52: .*Train"
    ):
        single.outputs(PAIRS)


def test_a_vector_of_zeros_stays_zero():
    baseline = BASELINES.create("sentence-embedding")
    vectors = baseline.vectors(NEW, lambda rows: np.zeros((len(rows), 4), dtype=np.float32))
    assert (vectors == 0).all()


def test_it_needs_an_encoder():
    task = Classification.from_examples(TWO)
    with pytest.raises(ValueError, match="sentence-embedding needs an encoder"):
        BASELINES.create("sentence-embedding").fit(TWO, task.targets(TWO.labels), task, 0, None)
