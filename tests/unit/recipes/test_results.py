import json
import math

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.metrics import f1_score

from totune.recipes.results import AVERAGES, Outcome, ProtocolGroup, Results, evaluate, run_test
from totune.tasks.base import UNKNOWN
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

TASK = Classification(("0", "1"))


def test_averages_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    found = evaluate(TASK, targets, predictions)
    expected = [
        f1_score(targets, predictions, pos_label=0),
        *(f1_score(targets, predictions, average=name) for name in ("macro", "weighted", "micro")),
    ]
    np.testing.assert_allclose([found[name] for name in AVERAGES], expected)
    assert found["f1"] == pytest.approx(f1_score(targets, predictions))
    assert found["f1 micro"] == found["accuracy"]


def test_labels_that_training_never_saw_do_not_break_averages():
    found = evaluate(TASK, np.array([0, 1, UNKNOWN]), np.array([0, 1, 1]))
    assert found["f1 of class 0"] == 1.0
    assert found["f1 micro"] == pytest.approx(2 / 3)


def test_other_tasks_have_their_metrics_alone():
    found = evaluate(Regression(0.0, 1.0), np.array([0.0, 1.0]), np.array([0.1, 0.8]))
    assert set(found) == {"pearson", "spearman", "mse"}
    three = evaluate(Classification(("a", "b", "c")), np.array([0, 1, 2]), np.array([0, 1, 1]))
    assert not set(AVERAGES) & set(three)


def test_a_test_is_welchs_and_first_minus_second():
    first = Outcome("a", {"accuracy": (0.80, 0.82, 0.81)}, {})
    second = Outcome("b", {"accuracy": (0.83, 0.86, 0.82, 0.85)}, {})
    found = run_test(first, second, "accuracy", {"t": -1.0, "df": 3.0, "p": 0.4})
    expected = ttest_ind(first.scores["accuracy"], second.scores["accuracy"], equal_var=False)
    assert found.ours == pytest.approx(
        {"t": expected.statistic, "df": expected.df, "p": expected.pvalue}
    )
    assert found.ours["t"] < 0


def test_a_single_value_has_no_test():
    one = Outcome("a", {"accuracy": (0.8,)}, {})
    assert run_test(one, one, "accuracy", None).ours is None


def test_differences_need_both_sides():
    outcome = Outcome("a", {"accuracy": (0.8, 0.9), "f1": (0.5, 0.6)}, {"accuracy": 0.8})
    assert outcome.difference("accuracy") == pytest.approx(0.05)
    assert outcome.difference("f1") is None
    assert Outcome("b", {}, {"accuracy": 0.8}, failed=2).difference("accuracy") is None


def test_json_holds_summaries_and_no_nan():
    outcome = Outcome("a", {"accuracy": (0.8,)}, {"accuracy": 0.79})
    results = Results(
        (ProtocolGroup("All", "", (outcome,)),), (), 1.0, 1, {"settings": {"x": math.inf}}
    )
    text = json.dumps(results.to_json(), allow_nan=False)
    row = json.loads(text)["groups"][0]["outcomes"][0]
    assert row["scores"] == {"accuracy": [0.8]}
    assert row["summary"]["accuracy"] == {
        "mean": 0.8,
        "std": None,
        "n": 1,
        "low": None,
        "high": None,
    }


@pytest.mark.parametrize(
    ("accuracy", "highest"),
    [(0.824, {"f1": 0.830, "f1 of class 0": 0.866, "f1 macro": 0.825, "f1 weighted": 0.825})],
)
def test_the_bounds_that_the_notes_of_hart_bert_state(accuracy, highest):
    """The best F1 over every way in which the errors can fall, at the paper's class shares."""
    positive, errors = 3271 / 7613, 1 - accuracy
    missed = np.linspace(0, errors, 2001)
    of_one = 2 * (positive - missed) / (2 * (positive - missed) + errors)
    right = 1 - positive - (errors - missed)
    of_zero = 2 * right / (2 * right + errors)
    found = {
        "f1": of_one.max(),
        "f1 of class 0": of_zero.max(),
        "f1 macro": ((of_one + of_zero) / 2).max(),
        "f1 weighted": (positive * of_one + (1 - positive) * of_zero).max(),
    }
    for name, bound in highest.items():
        assert found[name] <= bound + 0.0005, name
    assert found["f1 of class 0"] > 0.863
    assert found["f1 of class 0"] < 0.872
