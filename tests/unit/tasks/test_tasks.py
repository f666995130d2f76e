"""Label spaces: targets, losses, metrics and the way back to labels."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch.nn import functional

from totune.data.examples import Examples
from totune.errors import ConfigError
from totune.tasks.base import TASKS, UNKNOWN, Task, task_from_json
from totune.tasks.classification import Classification
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression

CLASSES = Classification(("bad", "good", "so-so"))
SCORES = Regression(1.0, 5.0)
LABEL_SETS = MultiLabel(("bad", "good", "so-so"), (0.5, 0.5, 0.3))
EACH = np.ones(4, dtype=int)  # one position per row


def labelled(*labels: str | float) -> Examples:
    return Examples(("x",) * len(labels), labels)


@pytest.mark.parametrize("task", [CLASSES, SCORES, LABEL_SETS], ids=lambda t: t.name)
def test_a_task_survives_json(task: Task) -> None:
    assert task_from_json(json.loads(json.dumps(task.to_json()))) == task


@pytest.mark.parametrize(
    "data",
    [
        {"name": "clasification"},
        {"name": "classification"},
        {"name": "regression", "low": "x"},
        {"name": "multi-label", "labels": ["a", "b"], "thresholds": [0.5]},
        {"name": "multi-label", "labels": ["a", "b"], "thresholds": [0.5, 1.5]},
    ],
    ids=str,
)
def test_what_describes_no_task_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        task_from_json(data)


def test_every_task_is_here() -> None:
    assert TASKS.names() == ["classification", "multi-label", "regression", "tagging"]


def test_classes_are_sorted_and_the_second_of_two_is_positive() -> None:
    task = Classification.from_examples(labelled("pos", "neg", "pos"))
    assert task == Classification(("neg", "pos"))
    assert task.outputs == 2
    targets = task.targets(["pos", "neg", "pos"])
    assert targets.tolist() == [1, 0, 1]
    assert task.evaluate(targets, np.array([1, 1, 1]))["f1"] == pytest.approx(0.8)


def test_numbers_are_ordered_by_value() -> None:
    assert Classification.from_examples(labelled("10", "9", "-1")).labels == ("-1", "9", "10")


def test_the_order_of_the_source_holds_for_the_classes_of_train() -> None:
    train = labelled("equivalent", "not_equivalent")
    order = ("not_equivalent", "unsure", "equivalent")
    task = Classification.from_examples(train, order)
    assert task.labels == ("not_equivalent", "equivalent")
    assert task.positive == "equivalent"


@pytest.mark.parametrize("positive", ["neg", "pos"])
def test_f1_is_that_of_the_class_that_is_named(positive: str) -> None:
    rng = np.random.default_rng(0)
    truth, answers = rng.choice(["neg", "pos"], size=(2, 50), p=[0.7, 0.3])
    task = Classification(("neg", "pos")).with_positive(positive)
    assert task.positive == positive
    found = task.evaluate(task.targets(list(truth)), task.targets(list(answers)))
    assert found["f1"] == pytest.approx(f1_score(truth, answers, pos_label=positive))


@pytest.mark.parametrize(
    ("task", "label", "message"),
    [
        (
            Classification(("neg", "pos")),
            "post",
            "positive_label='post' is none of the classes.*pos",
        ),
        (CLASSES, "good", "positive_label='good' .* here are 3"),
        (SCORES, "good", "positive_label='good' .* the task is regression"),
    ],
)
def test_a_positive_class_must_be_one_of_two(task: Task, label: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        task.with_positive(label)


def test_an_unseen_label_has_no_loss_and_is_always_wrong() -> None:
    targets = CLASSES.targets(["good", "splendid"])
    assert targets.tolist() == [1, UNKNOWN]
    assert CLASSES.known(targets).tolist() == [True, False]
    outputs = torch.randn(2, 3, requires_grad=True)
    losses = CLASSES.losses(outputs, torch.from_numpy(targets))
    losses.sum().backward()
    assert losses[1] == 0
    assert outputs.grad is not None
    assert outputs.grad[1].tolist() == [0, 0, 0]
    for guess in range(3):
        assert CLASSES.evaluate(targets, np.array([1, guess]))["accuracy"] == 0.5


def test_the_classification_loss_is_that_of_each_row() -> None:
    outputs, targets = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    losses = CLASSES.losses(outputs, targets)
    expected = [functional.cross_entropy(o[None], t[None]) for o, t in zip(outputs, targets)]  # noqa: B905
    torch.testing.assert_close(losses, torch.stack(expected))


def test_the_largest_output_is_the_label() -> None:
    outputs = np.array([[0.1, 3.0, 0.2], [9.0, -1.0, 8.0]], dtype=np.float32)
    predictions = CLASSES.predictions(outputs, np.ones(2, dtype=int))
    assert CLASSES.decode(predictions) == ["good", "bad"]
    scores = CLASSES.scores(outputs)
    assert scores is not None
    assert scores.argmax(axis=1).tolist() == predictions.tolist()
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_extreme_outputs_have_probabilities() -> None:
    scores = CLASSES.scores(np.array([[1e4, -1e4, 0.0]], dtype=np.float32))
    assert scores is not None
    assert scores.tolist() == [[1.0, 0.0, 0.0]]


def test_scores_are_learnt_between_0_and_1_and_told_on_their_own_scale() -> None:
    assert Regression.from_examples(labelled(5.0, 1.0, 2.5)) == SCORES
    assert SCORES.outputs == 1
    targets = SCORES.targets([1.0, 3.0, 5.0, 7.0])
    losses = SCORES.losses(torch.zeros(4, 1), torch.from_numpy(targets))
    torch.testing.assert_close(losses, torch.tensor([0.0, 0.25, 1.0, 2.25]))
    outputs = np.array([[0.0], [0.5], [1.0], [1.5]], dtype=np.float32)
    assert SCORES.decode(SCORES.predictions(outputs, EACH)) == [1.0, 3.0, 5.0, 7.0]
    assert SCORES.scores(outputs) is None
    perfect = SCORES.evaluate(targets, SCORES.predictions(outputs, EACH))
    assert perfect == {"pearson": pytest.approx(1), "spearman": pytest.approx(1), "mse": 0}


def test_a_score_may_be_any_number() -> None:
    task = Regression(-100.0, 0.0)
    targets = task.targets([float(UNKNOWN), -3.0])
    assert task.known(targets).tolist() == [True, True]
    assert (task.losses(torch.ones(2, 1), torch.from_numpy(targets)) > 0).all()


@pytest.mark.parametrize("task", [CLASSES, SCORES], ids=lambda t: t.name)
def test_metrics_are_those_named(task: Task) -> None:
    targets = np.array([0, 1, 2, 1])
    assert tuple(task.evaluate(targets, targets)) == task.metrics


def test_predictions_that_never_differ_are_degenerate() -> None:
    targets = np.array([0, 1, 2])
    assert CLASSES.degenerate(targets, np.array([1, 1, 1])) == "predicts only 'good'"
    assert CLASSES.degenerate(targets, np.array([1, 1, 0])) is None
    assert CLASSES.degenerate(np.array([1, 1]), np.array([1, 1])) is None
    assert SCORES.degenerate(targets, np.full(3, 2.5)) == "predicts 2.500 for every row"
    assert SCORES.degenerate(targets, np.array([2.5, 2.6, 2.5])) is None
