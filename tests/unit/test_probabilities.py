"""Metrics for skewed classes and of probabilities, against scikit-learn and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from totune.metrics import METRICS, UNSEEN
from totune.metrics.probabilities import BINS, LEAST

OF_PROBABILITIES = sorted(name for name, metric in METRICS.items() if metric.of_probabilities)


def drawn(classes: int, rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Targets [N] and probabilities [N, C] with ties, that know something of them."""
    rng = np.random.default_rng(seed)
    targets = np.append(np.arange(classes), rng.choice(classes, rows - classes))
    outputs = rng.normal(size=(rows, classes)) + 1.5 * np.eye(classes)[targets]
    odds = np.exp(outputs.round(0))
    return targets, (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("classes", [2, 4])
def test_decisions_agree_with_scikit_learn(classes: int) -> None:
    targets, probabilities = drawn(classes)
    found = probabilities.argmax(axis=1)
    expected = {
        "balanced-accuracy": reference.balanced_accuracy_score(targets, found),
        "macro-f1": reference.f1_score(targets, found, average="macro"),
        "micro-f1": reference.f1_score(targets, found, average="micro"),
        "weighted-f1": reference.f1_score(targets, found, average="weighted"),
    }
    ours = {name: METRICS[name](targets, found, classes) for name in expected}
    assert ours == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_agree_with_scikit_learn(classes: int) -> None:
    targets, p = drawn(classes)
    exact = p.astype(np.float64) / p.sum(axis=1, keepdims=True, dtype=np.float64)
    one = exact[:, 1] if classes == 2 else exact
    every = targets if classes == 2 else np.eye(classes)[targets]
    expected = {
        "roc-auc": reference.roc_auc_score(targets, one, multi_class="ovr"),
        "pr-auc": reference.average_precision_score(every, p[:, 1] if classes == 2 else p),
        "log-loss": reference.log_loss(targets, exact),
    }
    ours = {name: METRICS[name](targets, p, classes) for name in expected}
    assert ours == pytest.approx(expected, rel=1e-5)


def test_the_calibration_error_is_that_of_a_loop_over_bins() -> None:
    targets, p = drawn(3)
    sure, right = p.max(axis=1), p.argmax(axis=1) == targets
    error = 0.0
    for number in range(BINS):
        inside = (sure > number / BINS) & (sure <= (number + 1) / BINS)
        if inside.any():
            gap = abs(right[inside].mean() - sure[inside].mean(dtype=np.float64))
            error += inside.mean() * gap
    assert METRICS["calibration-error"](targets, p, 3) == pytest.approx(error)


@given(st.integers(2, 4), st.integers(0, 5), st.data())
@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_weights_are_repeated_rows(name: str, classes: int, seed: int, data: st.DataObject) -> None:
    targets, p = drawn(classes, rows=12, seed=seed)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any))
    weighted = METRICS[name].resampled(targets, p[None], np.array([counts]), classes)[0, 0]
    repeated = METRICS[name](np.repeat(targets, counts), np.repeat(p, counts, axis=0), classes)
    assert weighted == pytest.approx(repeated, abs=1e-6)


def test_rows_of_one_class_rank_as_by_chance() -> None:
    p = np.array([[0.2, 0.8], [0.9, 0.1]])
    assert METRICS["roc-auc"](np.array([0, 0]), p, 2) == 0.5
    assert METRICS["roc-auc"](np.array([1, 1]), p, 2) == 0.5
    assert METRICS["pr-auc"](np.array([0, 0]), p, 2) == 0.0


def test_a_label_never_seen_has_no_probability() -> None:
    p = np.array([[0.2, 0.8], [1.0, 0.0]])
    loss = METRICS["log-loss"](np.array([1, UNSEEN]), p, 2)
    assert loss == pytest.approx((-np.log(0.8) - np.log(LEAST)) / 2)


def test_probabilities_that_are_not_finite_spoil_no_other_seed() -> None:
    targets, p = drawn(2)
    spoilt = p.copy()
    spoilt[3, 1] = np.nan
    found = METRICS["roc-auc"].resampled(targets, np.stack([spoilt, p]), np.ones((1, 60)), 2)
    assert np.isnan(found).tolist() == [[True], [False]]


def test_decisions_are_no_probabilities() -> None:
    targets, p = drawn(2)
    with pytest.raises(ValueError, match=r"roc-auc takes class probabilities \[N, C\]"):
        METRICS["roc-auc"](targets, targets, 2)
    with pytest.raises(ValueError, match="accuracy takes one prediction per target"):
        METRICS["accuracy"](targets, p, 2)
