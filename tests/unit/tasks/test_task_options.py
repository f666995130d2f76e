"""Options of classification: class weights, focal loss, label smoothing; and its thresholds."""

import json

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from tests.tiny_runs import TinyTask, fit, short, tiny_model
from torch.nn import functional

from totune.data.examples import Examples
from totune.errors import ConfigError
from totune.linear_model import choose_strength, draw_folds, fit_linear
from totune.tasks.base import UNKNOWN, Task, task_from_json
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression
from totune.tasks.tagging import Tagging
from totune.training.inputs import open_source, predict

LABELS = ("a",) * 6 + ("b",) * 3 + ("c",)
TRAIN = Examples(("x",) * 10, LABELS)
PLAIN = Classification(("a", "b", "c"))
OUTPUTS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TARGETS = torch.tensor([0, 2, 1, UNKNOWN, 0])


def test_balanced_weights_are_scikit_learn_s() -> None:
    task = PLAIN.with_options({"class_weight": "balanced"}, TRAIN)
    expected = compute_class_weight("balanced", classes=np.array(list("abc")), y=np.array(LABELS))
    assert task.weights == pytest.approx(expected)
    assert np.mean(task.row_weights(task.targets(LABELS))) == pytest.approx(1.0)
    assert task.with_options({"class_weight": None}, TRAIN) == PLAIN


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_weights_and_smoothing_are_those_of_pytorch(smoothing: float) -> None:
    options = {"class_weight": "balanced", "label_smoothing": smoothing}
    task = PLAIN.with_options(options, TRAIN)
    plain = functional.cross_entropy(
        OUTPUTS, TARGETS, ignore_index=UNKNOWN, reduction="none", label_smoothing=smoothing
    )
    weights = torch.tensor([task.weights[max(0, int(each))] for each in TARGETS])
    torch.testing.assert_close(task.losses(OUTPUTS, TARGETS), plain * weights, check_dtype=False)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_focal_loss_is_that_of_a_loop(smoothing: float) -> None:
    task = PLAIN.with_options({"focal_gamma": 2, "label_smoothing": smoothing}, TRAIN)
    expected = []
    for row, target in zip(OUTPUTS.numpy(), TARGETS.tolist(), strict=True):
        p = np.exp(row) / np.exp(row).sum()
        q = np.full(3, smoothing / 3) + (1 - smoothing) * (np.arange(3) == target)
        loss = float((q * (1 - p) ** 2 * -np.log(p)).sum())
        expected.append(loss if target != UNKNOWN else 0.0)
    torch.testing.assert_close(task.losses(OUTPUTS, TARGETS), torch.tensor(expected).double())


def test_a_small_gamma_is_nearly_cross_entropy() -> None:
    found = PLAIN.with_options({"focal_gamma": 1e-9}, TRAIN).losses(OUTPUTS, TARGETS)
    torch.testing.assert_close(found, PLAIN.losses(OUTPUTS, TARGETS))


def test_options_that_are_not_set_leave_the_label_space_as_it_was() -> None:
    assert PLAIN.to_json() == {"name": "classification", "labels": ["a", "b", "c"]}
    assert PLAIN.with_options({}, TRAIN) == PLAIN
    options = {"class_weight": "balanced", "focal_gamma": 2.0, "label_smoothing": 0.1}
    task = PLAIN.with_options(options, TRAIN).with_metric("roc-auc")
    assert task_from_json(json.loads(json.dumps(task.to_json()))) == task


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (
            PLAIN,
            {"class_wieght": "balanced"},
            "has no option 'class_wieght'. Did you mean 'class_w",
        ),
        (PLAIN, {"class_weight": "heavy"}, "class_weight='heavy'"),
        (PLAIN, {"label_smoothing": 1}, "label_smoothing=1"),
        (PLAIN, {"focal_gamma": -1}, "focal_gamma=-1"),
        (Regression(0, 1), {"class_weight": "balanced"}, "regression has no option 'class_weight'"),
        (Tagging(("O", "B-X")), {"focal_gamma": 2}, "tagging has no option .*It takes none"),
    ],
)
def test_wrong_options_are_refused_by_name(
    task: Task, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        task.with_options(options, TRAIN)


def test_the_positive_class_takes_its_weight_and_threshold_along() -> None:
    task = Classification(("a", "b"), weights=(0.5, 2.0), thresholds=(0.2,))
    turned = task.with_positive("a")
    assert (turned.labels, turned.weights) == (("b", "a"), (2.0, 0.5))
    outputs = np.random.default_rng(0).normal(size=(50, 2))
    each = np.ones(50, dtype=int)
    before = task.decode(task.predictions(outputs, each))
    assert turned.decode(turned.predictions(outputs[:, ::-1], each)) == before
    assert task.with_positive("b") == task


# The solved head and the baselines


def blobs(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    targets = (rng.random(rows) < 0.1).astype(np.int64)
    return rng.normal(size=(rows, 5)) + targets[:, None], targets


def test_logistic_regression_has_scikit_learn_s_class_weight() -> None:
    features, targets = blobs()
    task = Classification(("a", "b"))
    train = Examples(("x",) * len(targets), tuple("ab"[each] for each in targets))
    balanced = task.with_options({"class_weight": "balanced"}, train)
    ours = fit_linear(features, targets, balanced, C=1.0)
    theirs = LogisticRegression(class_weight="balanced", tol=1e-8).fit(features, targets)
    assert ours.coefficients == pytest.approx(theirs.coef_, abs=1e-4)
    assert ours.intercept == pytest.approx(theirs.intercept_, abs=1e-4)
    drawn = draw_folds(task, targets, 5, seed=0)
    assert choose_strength(features, targets, balanced, drawn) > 0


def test_what_no_solver_minimises_is_trained_by_gradient() -> None:
    strategy = short("feature-extraction")
    for options, solved in (({"class_weight": "balanced"}, True), ({"focal_gamma": 2}, False)):
        task = PLAIN.with_options(options, TRAIN)
        model, [phase] = tiny_model(strategy, "bert", task)
        assert model.is_linear_probe is solved
        assert str(phase.stop).startswith("Solved") is solved


@pytest.mark.parametrize("name", ["feature-extraction", "fine-tuning"])
def test_weights_reach_the_model(name: str) -> None:
    tiny = TinyTask.of("classification", rows=40)
    found = []
    for weights in ((), (50.0, 0.01, 0.01)):
        task = Classification(("a", "b", "c"), weights=weights)
        model, plan = tiny_model(short(name, learning_rate=1e-2), "bert", task)
        trainer = fit(model, plan, tiny)
        outputs = predict(model, open_source(tiny.dev, model, None, -1), trainer.devices)
        found.append(int((outputs.values.argmax(axis=1) == 0).sum()))
    assert found[0] < found[1] == len(tiny.dev)


# Thresholds


def test_a_tuned_threshold_decides() -> None:
    task, each = Classification(("a", "b")), np.ones(4, dtype=int)
    outputs = np.log(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]))
    targets = np.array([0, 0, 1, 1])
    tuned = task.tuned(targets, outputs, "f1")
    assert tuned.thresholds == pytest.approx((0.25,))
    assert tuned.predictions(outputs, each).tolist() == [0, 0, 1, 1]
    assert tuned.measure(targets, outputs, each)["f1"] == 1.0
    assert task.measure(targets, outputs, each)["f1"] == 0.0
    assert task_from_json(json.loads(json.dumps(tuned.to_json()))) == tuned


@pytest.mark.parametrize(
    ("task", "metric", "message"),
    [
        (PLAIN, "accuracy", "tune_threshold is for two classes; here are 3"),
        (Regression(0, 1), "pearson", "for classification with two classes; the task is regress"),
        (Classification(("a", "b")), "roc-auc", "of no use to metric='roc-auc'"),
    ],
)
def test_thresholds_are_refused_where_they_decide_nothing(
    task: Task, metric: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        task.check_thresholds(metric)
