"""Rows of any number of labels: targets, losses, thresholds and the way back to labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from totune.data.examples import Examples
from totune.errors import ConfigError
from totune.tasks.multi_label import MultiLabel

TASK = MultiLabel(("anger", "fear", "joy"), (0.5, 0.5, 0.5))
EACH = np.ones(2, dtype=int)  # one position per row


def logits(*probabilities: list[float]) -> np.ndarray:
    shares = np.array(probabilities)
    return np.log(shares / (1 - shares))


def test_labels_are_those_of_train_in_the_order_of_the_source() -> None:
    train = Examples(("x",) * 3, (("joy", "anger"), (), ("joy",)))
    assert MultiLabel.from_examples(train).labels == ("anger", "joy")
    ordered = MultiLabel.from_examples(train, ("joy", "fear", "anger"))
    assert ordered == MultiLabel(("joy", "anger"), shares=(2 / 3, 1 / 3))
    numbers = Examples(("x",) * 2, (("10", "9"), ("2",)))
    assert MultiLabel.from_examples(numbers).labels == ("2", "9", "10")


def test_targets_count_labels_that_training_never_saw() -> None:
    targets = TASK.targets([("anger", "joy"), (), ("fear", "pride", "shame")])
    assert targets.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 2]]
    assert TASK.decode(targets) == [("anger", "joy"), (), ("fear",)]
    assert TASK.flat(targets).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_the_loss_is_binary_cross_entropy_over_labels() -> None:
    outputs, targets = torch.randn(4, 3), torch.randint(0, 2, (4, 3)).float()
    whole = functional.binary_cross_entropy_with_logits(outputs, targets)
    torch.testing.assert_close(TASK.losses(outputs, targets).mean(), whole)


def test_a_label_is_predicted_from_its_threshold_on() -> None:
    outputs = logits([0.4, 0.6, 0.2], [0.3, 0.1, 0.49])
    assert TASK.decode(TASK.predictions(outputs, EACH)) == [("fear",), ()]
    lower = replace(TASK, thresholds=(0.35, 0.7, 0.4))
    assert lower.decode(lower.predictions(outputs, EACH)) == [("anger",), ("joy",)]
    np.testing.assert_allclose(TASK.scores(outputs)[0], [0.4, 0.6, 0.2], rtol=1e-5)


def test_thresholds_belong_to_labels() -> None:
    with pytest.raises(ConfigError, match="2 thresholds for 3 labels"):
        replace(TASK, thresholds=(0.5, 0.5))
    with pytest.raises(ConfigError, match=r"label 'joy' is .*; it must lie between 0 and 1"):
        replace(TASK, thresholds=(0.5, 0.5, 1.0))


def test_one_answer_for_every_row_is_degenerate() -> None:
    targets = TASK.targets([("joy",), ()])
    answers = {(): "predicts no label at all", ("anger", "joy"): "predicts 'anger|joy' for every"}
    for answer, told in answers.items():
        found = TASK.degenerate(targets, TASK.targets([answer, answer]))
        assert found is not None
        assert found.startswith(told)
    assert TASK.degenerate(targets, targets) is None
    assert TASK.degenerate(targets[:1], targets[:1]) is None


def test_scores_are_of_all_labels_and_of_each() -> None:
    targets = TASK.targets([("anger", "joy"), ("joy", "pride")])
    found = TASK.targets([("anger",), ("joy",)])
    scores = TASK.evaluate(targets, found)
    assert tuple(scores) == TASK.metrics
    assert scores == {"micro-f1": 2 / 3, "macro-f1": pytest.approx(5 / 9), "exact-match": 0.0}
    each = TASK.label_scores(targets, found)
    assert (each["support:joy"], each["recall:joy"], each["f1:fear"]) == (2, 0.5, 0)


def test_strata_are_the_rarest_labels() -> None:
    labels = [("anger", "joy"), ("joy",), (), ("joy",), ("anger",)]
    strata = TASK.strata(TASK.targets(labels)).tolist()
    assert strata[0] == strata[4]
    assert strata[1] == strata[3]
    assert len(set(strata)) == 3


def test_training_begins_at_the_shares_of_train() -> None:
    train = Examples(("x",) * 4, (("joy", "anger"), (), ("joy",), ("joy",)))
    task = MultiLabel.from_examples(train)
    np.testing.assert_allclose(task.scores(task.first_outputs()), [0.25, 0.75], rtol=1e-5)
    assert np.isfinite(replace(task, shares=(0.0, 1.0)).first_outputs()).all()
    assert TASK.first_outputs() is None
