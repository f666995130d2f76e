"""Linear models on fixed features where rows or labels are few."""

import numpy as np
import pytest

from totune.linear_model import (
    ABSENT,
    STRENGTHS,
    USUAL_STRENGTH,
    choose_strength,
    draw_folds,
    fit_linear,
)
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

FEATURES = np.random.default_rng(0).normal(size=(12, 5))
THREE = Classification(("a", "b", "c"))


def test_folds_hold_out_every_row_once_and_keep_the_shares_of_classes() -> None:
    targets = np.array([0] * 20 + [1] * 10)
    folds = draw_folds(THREE, targets, 5, seed=3)
    assert sorted(row for _, held_out in folds for row in held_out) == list(range(30))
    assert {int(targets[held_out].sum()) for _, held_out in folds} == {2}
    others = draw_folds(THREE, targets, 5, seed=4)
    assert [list(held_out) for _, held_out in folds] != [list(found) for _, found in others]


@pytest.mark.parametrize("targets", [[0, 1, 2], [0, 1], [0]])
def test_too_few_rows_to_hold_any_out_get_the_usual_penalty(targets: list[int]) -> None:
    known = np.array(targets)
    folds = draw_folds(THREE, known, 5, seed=0)
    assert folds == []
    assert choose_strength(FEATURES[: len(known)], known, THREE, folds) == USUAL_STRENGTH


def test_a_fold_is_left_out_where_one_label_would_be_left_to_train_on() -> None:
    targets = np.array([0] * 9 + [1])
    folds = draw_folds(THREE, targets, 5, seed=0)
    assert len(folds) == 4
    assert choose_strength(FEATURES[:10], targets, THREE, folds) in STRENGTHS


def test_two_scores_are_enough_for_folds() -> None:
    task, scores = Regression(0.0, 1.0), np.array([0.0, 1.0, 0.5, 0.25])
    assert len(draw_folds(task, scores, 5, seed=0)) == 4
    assert draw_folds(task, scores[:1], 5, seed=0) == []


def test_a_class_without_a_row_is_never_predicted() -> None:
    targets = np.array([0, 2] * 6)
    model = fit_linear(FEATURES, targets, THREE, C=1.0)
    weight, bias = model.layer()
    assert not weight[1].any()
    assert bias[1] == ABSENT
    outputs = FEATURES @ weight.T + bias
    assert set(outputs.argmax(axis=1)) <= {0, 2}
    np.testing.assert_allclose(THREE.scores(outputs), np.exp(model.predict(FEATURES)), atol=1e-6)
