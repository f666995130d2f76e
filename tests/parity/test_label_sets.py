"""Metrics and models of rows with several labels, against scikit-learn."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.tiny_runs import TinyTask, short, tiny_model

from totune.linear_model import STRENGTHS, choose_strength, draw_folds, fit_linear
from totune.metrics import METRICS
from totune.metrics.label_sets import constant_answers, label_scores
from totune.strategies.phases import solved_head
from totune.tasks.multi_label import MultiLabel
from totune.training.devices import Devices
from totune.training.inputs import linear_inputs, open_source
from totune.training.optimizer import apply_phase
from totune.training.solving import solve_head

ROWS, LABELS = 90, 5
TASK = MultiLabel(tuple("abcde"), (0.5,) * LABELS)
REFERENCES: dict[str, Callable[..., float]] = {
    "micro-f1": lambda t, p: sk.f1_score(t, p, average="micro", zero_division=0),
    "macro-f1": lambda t, p: sk.f1_score(t, p, average="macro", zero_division=np.nan),
    "exact-match": sk.accuracy_score,
}
EXACT = {"tol": 1e-10, "max_iter": 10_000}


def matrices(seed: int, unseen: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Targets [N, C + 1] and predictions [3, N, C + 1]; a label is rare, one never occurs."""
    rng = np.random.default_rng(seed)
    targets = rng.random((ROWS, LABELS + 1)) < [0.5, 0.3, 0.2, 0.02, 0.0, 0.05 * unseen]
    predictions = targets ^ (rng.random((3, ROWS, LABELS + 1)) < [0.2, 0.2, 0.3, 0.02, 0.0, 0.0])
    predictions[:, :, -1] = False
    return targets.astype(np.int16), predictions.astype(np.int16)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("data", [matrices(0), matrices(1, unseen=True)], ids=["known", "unseen"])
def test_a_metric_agrees_plain_and_resampled(
    name: str, data: tuple[np.ndarray, np.ndarray]
) -> None:
    targets, predictions = data
    expected = REFERENCES[name]
    for one in predictions:
        assert METRICS[name](targets, one) == pytest.approx(expected(targets, one), abs=1e-10)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, ROWS, (5, ROWS))
    weights = np.stack([np.bincount(rows, minlength=ROWS) for rows in drawn])
    found = METRICS[name].resampled(targets, predictions, weights)
    again = [[expected(targets[rows], one[rows]) for rows in drawn] for one in predictions]
    np.testing.assert_allclose(found, again, rtol=0, atol=1e-10)


def test_each_label_has_its_scores() -> None:
    targets, predictions = matrices(2)
    found = label_scores(targets, predictions[0], LABELS)
    expected = sk.precision_recall_fscore_support(
        targets[:, :-1], predictions[0, :, :-1], zero_division=0
    )
    for name, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        np.testing.assert_allclose(found[name], values)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("seed", range(3))
def test_no_constant_answer_is_better_than_those_that_are_tried(name: str, seed: int) -> None:
    targets, _ = matrices(seed, unseen=seed == 1)
    metric = METRICS[name]

    def best(answers: list[np.ndarray]) -> float:
        return max(metric(targets, np.tile(answer, (ROWS, 1))) for answer in answers)

    every = [np.array([*answer, 0]) for answer in product((0, 1), repeat=LABELS)]
    assert best(constant_answers(targets)) == pytest.approx(best(every))


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    features = StandardScaler().fit_transform(rng.normal(size=(ROWS, 12)))
    noise = 2 * rng.logistic(size=(ROWS, LABELS))
    applies = features @ rng.normal(size=(12, LABELS)) + noise > [0, 0, 1, 2, 2]
    return features, np.hstack([applies, np.zeros((ROWS, 1))]).astype(np.int16)


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_the_linear_model_is_one_vs_rest(C: float) -> None:
    features, targets = problem()
    theirs = OneVsRestClassifier(LogisticRegression(C=C, **EXACT)).fit(features, targets[:, :-1])
    ours = fit_linear(features, targets, TASK, C)
    np.testing.assert_allclose(
        TASK.scores(ours.predict(features)), theirs.predict_proba(features), atol=1e-4
    )
    weight, bias = ours.layer()
    np.testing.assert_allclose(features @ weight.T + bias, ours.predict(features))


def test_a_label_without_contrast_gets_no_weight() -> None:
    features, targets = problem()
    targets[:, 0], targets[:, 1] = 0, 1
    probabilities = TASK.scores(fit_linear(features, targets, TASK, 1.0).predict(features))
    np.testing.assert_allclose(probabilities[:, :2], np.tile([0, 1], (ROWS, 1)), atol=1e-6)


def test_the_penalty_has_the_lowest_loss_on_held_out_rows() -> None:
    features, targets = problem()
    folds = draw_folds(TASK, targets, 3, seed=0)
    assert sorted(row for _, held_out in folds for row in held_out) == list(range(ROWS))
    losses = []
    for C in STRENGTHS:
        loss = 0.0
        for rows, held_out in folds:
            odds = fit_linear(features[rows], targets[rows], TASK, C).predict(features[held_out])
            labels = targets[held_out, :-1]
            loss += sum(
                sk.log_loss(labels[:, at], TASK.scores(odds)[:, at], normalize=False, labels=[0, 1])
                for at in range(LABELS)
            )
        losses.append(loss)
    assert choose_strength(features, targets, TASK, folds) == STRENGTHS[int(np.argmin(losses))]


def test_the_solved_head_is_one_vs_rest_on_the_vectors_as_they_are() -> None:
    tiny = TinyTask.of("multi-label", rows=60)
    model, _ = tiny_model(short("feature-extraction", layers="top"), "bert", tiny.task)
    assert model.is_linear_probe
    apply_phase(model, solved_head())
    source = open_source(tiny.train, model, None, model.freeze_prefix())
    C = solve_head(model, source, Devices(), folds=3, seed=0)
    vectors = linear_inputs(model, source, Devices()).astype(np.float64)
    layer = model.head.linear_layer()
    outputs = vectors @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    theirs = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(C=C, **EXACT)))
    theirs.fit(vectors, tiny.train.flat)
    np.testing.assert_allclose(tiny.task.scores(outputs), theirs.predict_proba(vectors), atol=1e-4)
