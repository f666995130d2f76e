"""The solved head against scikit-learn's own pipelines: penalty, coefficients, predictions."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.tiny_runs import TinyTask, short, tiny_model

from totune.linear_model import STRENGTHS, choose_strength, draw_folds, fit_linear
from totune.strategies.phases import solved_head
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression
from totune.training.devices import Devices
from totune.training.inputs import linear_inputs, open_source
from totune.training.optimizer import apply_phase
from totune.training.solving import solve_head

EXACT = {"tol": 1e-10, "max_iter": 10_000}


def problem(labels: int, rows: int = 120, width: int = 30) -> tuple[np.ndarray, np.ndarray, Task]:
    """Standardised features, and targets of so many classes; 1 for scores."""
    random = np.random.default_rng(labels)
    features = random.normal(size=(rows, width))
    signal = features @ random.normal(size=(width, labels))
    signal += 4 * random.gumbel(size=signal.shape)
    features = StandardScaler().fit_transform(features)
    if labels == 1:
        return features, signal[:, 0], Regression(signal.min(), signal.max())
    return features, signal.argmax(axis=1), Classification(tuple("abcdefgh"[:labels]))


@pytest.mark.parametrize("labels", [2, 3, 6])
def test_the_penalty_is_that_of_logistic_regression_with_cross_validation(labels: int) -> None:
    features, targets, task = problem(labels)
    folds = draw_folds(task, targets, 5, seed=0)
    theirs = LogisticRegressionCV(
        Cs=STRENGTHS,
        cv=folds,
        scoring="neg_log_loss",
        use_legacy_attributes=False,
        l1_ratios=(0.0,),
        **EXACT,
    ).fit(features, targets)
    assert choose_strength(features, targets, task, folds) == theirs.C_


def test_the_penalty_of_scores_is_that_of_a_grid_search() -> None:
    features, targets, task = problem(1)
    folds = draw_folds(task, targets, 5, seed=0)
    scaled = (targets - task.low) / (task.high - task.low)
    grid = {"alpha": [1 / (2 * strength) for strength in STRENGTHS]}
    theirs = GridSearchCV(Ridge(), grid, cv=folds, scoring="neg_mean_squared_error")
    alpha = theirs.fit(features, scaled).best_params_["alpha"]
    assert choose_strength(features, targets, task, folds) == 1 / (2 * alpha)


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize("C", [1e-3, 0.1])
def test_the_layer_is_logistic_regression(labels: int, C: float) -> None:
    features, targets, task = problem(labels)
    theirs = LogisticRegression(C=C, **EXACT).fit(features, targets)
    weight, bias = fit_linear(features, targets, task, C).layer()
    if labels == 2:  # theirs has one row, the second class against the first
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    np.testing.assert_allclose(weight, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(bias, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("kind", ["classification", "regression", "pairs"])
def test_the_head_reads_vectors_as_they_are(kind: str) -> None:
    """The standardisation is folded into the weights: outputs are those of a whole pipeline."""
    tiny = TinyTask.of(kind, rows=60)
    model, _ = tiny_model(short("feature-extraction", layers="top"), "bert", tiny.task)
    apply_phase(model, solved_head())
    source = open_source(tiny.train, model, None, model.freeze_prefix())
    C = solve_head(model, source, Devices(), folds=5, seed=0)
    vectors = linear_inputs(model, source, Devices()).astype(np.float64)
    layer = model.head.linear_layer()
    outputs = vectors @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    if kind == "regression":
        scaled = (tiny.train.flat - tiny.task.low) / (tiny.task.high - tiny.task.low)
        theirs = make_pipeline(StandardScaler(), Ridge(alpha=1 / (2 * C))).fit(vectors, scaled)
        np.testing.assert_allclose(outputs[:, 0], theirs.predict(vectors), atol=1e-4)
    else:
        theirs = make_pipeline(StandardScaler(), LogisticRegression(C=C, **EXACT))
        theirs.fit(vectors, tiny.train.flat)
        np.testing.assert_allclose(
            tiny.task.scores(outputs), theirs.predict_proba(vectors), atol=1e-4
        )
