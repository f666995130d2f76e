import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from tests.unit.baselines.samples import NEW, SCORES, THREE, TWO, predicted

from totune.baselines.base import BASELINES
from totune.data.examples import Examples
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression


def test_classes_are_those_of_the_dummy_classifier():
    train = Examples(texts=THREE.texts[:-2], labels=THREE.labels[:-2])
    task = Classification.from_examples(train)
    dummy = DummyClassifier(strategy="prior").fit(train.texts, train.labels)
    outputs = BASELINES.create("majority").fit(train, task.targets(train.labels), task, 0, None)
    found = outputs.outputs(NEW)
    np.testing.assert_allclose(np.exp(found), dummy.predict_proba(NEW.texts))
    assert task.decode(predicted(task, found)) == list(dummy.predict(NEW.texts))


def test_scores_are_those_of_the_dummy_regressor():
    task = Regression.from_examples(SCORES)
    dummy = DummyRegressor().fit(SCORES.texts, SCORES.labels)
    fitted = BASELINES.create("majority").fit(SCORES, task.targets(SCORES.labels), task, 0, None)
    found = predicted(task, fitted.outputs(NEW))
    np.testing.assert_allclose(found, dummy.predict(NEW.texts), rtol=1e-6)


def test_a_class_without_rows_has_no_share():
    task = Classification.from_examples(THREE)
    fitted = BASELINES.create("majority").fit(TWO, task.targets(TWO.labels), task, 0, None)
    assert np.exp(fitted.outputs(NEW))[0, task.labels.index("mid")] < 1e-40
