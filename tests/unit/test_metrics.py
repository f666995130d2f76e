import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.errors import ConfigError
from totune.metrics import METRICS, UNSEEN, get_metric

CLASS_METRICS = (
    *("accuracy", "f1", "matthews"),
    *("balanced-accuracy", "macro-f1", "micro-f1", "weighted-f1"),
)
CORRELATIONS = ("pearson", "spearman")
OF_ROWS = sorted(
    name
    for name, metric in METRICS.items()
    if not (metric.per_word or metric.of_probabilities) and name != "exact-match"
)


@pytest.mark.parametrize("name", CLASS_METRICS)
def test_perfect_predictions_score_one(name: str):
    targets = np.array([0, 1, 2, 1, 0])
    assert METRICS[name](targets, targets, 3) == pytest.approx(1.0)


def test_f1_is_that_of_class_one_where_there_are_two():
    targets, predictions = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    assert METRICS["f1"](targets, predictions, 2) == pytest.approx(0.5)
    assert METRICS["f1"](np.array([0, 0]), np.array([0, 0]), 2) == 0.0


def test_f1_of_several_classes_is_the_mean_even_if_only_two_occur():
    targets, predictions = np.array([1, 1, 1, 0]), np.array([1, 1, 1, 1])
    binary = METRICS["f1"](targets, predictions, 2)
    assert METRICS["f1"](targets, predictions, 3) == pytest.approx(binary / 2)


@pytest.mark.parametrize("name", CLASS_METRICS)
def test_a_label_never_seen_is_always_wrong(name: str):
    predictions = np.array([0, 1, 0, 1, 1, 0])
    seen = np.array([0, 1, 0, 1, 1, 0])
    unseen = np.where(np.arange(6) < 2, UNSEEN, seen)
    assert METRICS[name](unseen, predictions, 2) < METRICS[name](seen, predictions, 2)


@pytest.mark.parametrize("name", CLASS_METRICS)
def test_nothing_but_unseen_labels_scores_nothing(name: str):
    assert METRICS[name](np.full(4, UNSEEN), np.array([0, 1, 0, 1]), 2) == 0.0


@pytest.mark.parametrize("name", ["matthews", *CORRELATIONS])
@pytest.mark.parametrize("constant", [0, 1])
def test_constant_predictions_correlate_with_nothing(name: str, constant: int):
    targets = np.array([0, 1, 1, 0, 1])
    assert METRICS[name](targets, np.full(5, constant)) == 0.0
    assert METRICS[name](np.full(5, constant), targets) == 0.0


def test_a_constant_that_rounds_badly_is_still_constant():
    assert METRICS["pearson"](np.arange(7.0), np.full(7, 0.1)) == 0.0


@pytest.mark.parametrize("name", [*CORRELATIONS, "mse"])
def test_predictions_that_are_not_finite_score_nan_and_spoil_no_other_seed(name: str):
    targets = np.array([1.0, 2.0, 4.0])
    predictions = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 4.0], [np.inf, 0.0, 1.0]])
    found = METRICS[name].resampled(targets, predictions, np.ones((2, 3)))
    assert np.isnan(found).tolist() == [[True, True], [False, False], [True, True]]


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="as many predictions as targets"):
        METRICS["accuracy"](np.array([0, 1]), np.array([0]))
    with pytest.raises(ValueError, match="as many predictions as targets"):
        METRICS["accuracy"](np.array([]), np.array([]))


def test_an_unknown_metric_gets_the_nearest_name():
    with pytest.raises(ConfigError, match="Did you mean 'accuracy'"):
        get_metric("acuracy")
    assert get_metric("mse").higher_is_better is False


def test_the_sign_makes_every_score_better_when_higher():
    errors = {name for name, metric in METRICS.items() if metric.sign < 0}
    assert errors == {"mse", "log-loss", "calibration-error"}


classes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@given(classes, st.permutations(range(4)))
@pytest.mark.parametrize("name", CLASS_METRICS)
def test_names_of_classes_do_not_matter(name: str, pairs: list[tuple[int, int]], order: list[int]):
    targets, predictions = np.array(pairs).T
    renamed = np.array(order)
    before = METRICS[name](targets, predictions, 4)
    assert METRICS[name](renamed[targets], renamed[predictions], 4) == pytest.approx(before)


@given(classes, st.data())
@pytest.mark.parametrize("name", OF_ROWS)
def test_weights_are_repeated_rows(name: str, pairs: list[tuple[int, int]], data: st.DataObject):
    targets, predictions = np.array(pairs).T
    counts = data.draw(
        st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)).filter(any)
    )
    weighted = METRICS[name].resampled(targets, predictions[None], np.array([counts]), 4)[0, 0]
    repeated = METRICS[name](np.repeat(targets, counts), np.repeat(predictions, counts), 4)
    assert weighted == pytest.approx(repeated, abs=1e-9)
