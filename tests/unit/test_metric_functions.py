"""A person's own function as the metric: found, checked, resampled, and never run unasked."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_data import write_reviews

import totune
from totune.errors import ConfigError
from totune.metrics import METRICS, get_metric, load_metric
from totune.metrics.thresholds import best_threshold
from totune.statistics import paired_bootstrap
from totune.study.study import Study

SOURCE = """
def hits(y_true, y_pred):
    return float((y_true == y_pred).mean())

def cost(y_true, y_pred):
    return (10 * (y_pred < y_true) + (y_pred > y_true)).mean()

cost.greater_is_better = False

def needs_both(y_true, y_pred):
    if len(set(y_true)) < 2:
        raise ValueError("only one class")
    return (y_true == y_pred).mean()

def nothing(y_true, y_pred):
    return float("nan")

text = "no function"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of functions in the working directory, and what was loaded forgotten after."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("totune.metrics.METRICS", METRICS)
        before = set(METRICS)
        yield name
    for added in set(METRICS) - before:
        del METRICS[added]


def test_a_function_scores_as_it_says(own: str) -> None:
    targets, found = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 0])
    cost = load_metric(f"{own}:cost")
    assert cost(targets, found, 2) == pytest.approx(11 / 4)
    assert cost.sign == -1
    assert load_metric(f"{own}:hits").sign == 1


def test_a_function_resamples_as_our_own_metric_does(own: str) -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 50)
    a, b = (np.where(rng.random((2, 50)) < 0.7, targets, 1 - targets) for _ in range(2))
    ours = paired_bootstrap(METRICS["accuracy"], targets, a, b, 2, resamples=200)
    theirs = paired_bootstrap(load_metric(f"{own}:hits"), targets, a, b, 2)
    assert theirs.difference == pytest.approx(ours.difference)
    one_row = 1 / 50**2  # which a bounded metric adds, since no score is certain
    assert theirs.example_sd**2 == pytest.approx(ours.example_sd**2 - one_row)


def test_a_resample_that_a_function_cannot_score_counts_as_all_rows(own: str) -> None:
    metric, targets = load_metric(f"{own}:needs_both"), np.array([0, 1, 1])
    weights = np.array([[1.0, 1, 1], [0, 2, 1]])
    found = metric.resampled(targets, np.array([[0, 1, 0]]), weights, 2)
    assert found.tolist() == [[pytest.approx(2 / 3), pytest.approx(2 / 3)]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:cost", "cannot be imported .ModuleNotFoundError"),
        ("{own}:coast", "has no function 'coast'"),
        ("{own}:text", "has no function 'text'"),
        ("{own}:", "is not of the form module:function"),
    ],
)
def test_what_cannot_be_imported_is_refused(own: str, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_metric(name.format(own=own))


@pytest.mark.parametrize(
    ("function", "message"),
    [("nothing", "returned nan for 2 rows"), ("needs_both", "failed on 2 rows .ValueError: only")],
)
def test_a_function_without_a_finite_number_is_refused(
    own: str, function: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_metric(f"{own}:{function}")(np.array([0, 0]), np.array([0, 1]), 2)


def test_a_function_that_nobody_named_is_not_run(own: str) -> None:
    with pytest.raises(ConfigError, match="a function that this folder names and does not hold"):
        get_metric(f"{own}:hits")


def test_a_study_is_compared_on_a_function(own: str, tmp_path: Path) -> None:
    data, metric = write_reviews(tmp_path / "reviews.csv"), f"{own}:cost"
    study = totune.compare(
        data,
        strategies=["majority", "tf-idf"],
        seeds=1,
        folds=1,
        metric=metric,
        out=tmp_path / "study",
    )
    [majority, tf_idf] = study.records
    assert study.info.metrics[0] == metric
    assert majority.test[metric] > tf_idf.test[metric]
    assert study.advice.best == "tf-idf"
    assert metric not in totune.load(study.best).task.metrics
    del METRICS[metric]
    with pytest.raises(ConfigError, match="name it yourself"):
        Study(study.folder)
    load_metric(metric)
    assert Study(study.folder).advice.best == "tf-idf"


def test_a_function_is_tried_before_anything_is_trained(own: str, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv")
    with pytest.raises(ConfigError, match="returned nan"):
        totune.compare(data, strategies=["tf-idf"], metric=f"{own}:nothing", out=tmp_path / "x")


# Thresholds


def test_the_best_threshold_is_found() -> None:
    scores = np.array([0.05, 0.1, 0.2, 0.3, 0.35, 0.4])
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert best_threshold(scores, labels, METRICS["f1"]) == pytest.approx(0.25)


def test_of_equal_thresholds_the_one_nearest_to_one_half_is_taken() -> None:
    labels = np.array([0, 0, 1, 1])
    assert best_threshold(np.array([0.1, 0.2, 0.7, 0.9]), labels, METRICS["accuracy"]) == 0.5
    assert best_threshold(np.full(4, 0.3), labels, METRICS["accuracy"]) == 0.5


def test_a_threshold_over_many_scores_is_near_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(5_000) < 0.1).astype(int)
    scores = rng.beta(2 + 2 * labels, 8).astype(np.float32)
    metric = METRICS["balanced-accuracy"]
    found = metric(labels, (scores >= best_threshold(scores, labels, metric)).astype(int), 2)
    every = max(metric(labels, (scores >= t).astype(int), 2) for t in np.linspace(0, 1, 500))
    assert found > every - 0.005
