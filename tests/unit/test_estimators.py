"""The estimators in scikit-learn: its own checks as far as texts allow, and its tools."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks
from tests.tiny_data import read_table, save_encoder, write_reviews, write_scores

import totune
from totune import TotuneClassifier, TotuneFeatures, TotuneRegressor, TotuneTagger
from totune.errors import ConfigError, DataError

ESTIMATORS = (TotuneClassifier, TotuneRegressor, TotuneTagger, TotuneFeatures)
# Those of scikit-learn's checks that need no rows; all others make rows of numbers.
OF_NO_ROWS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
)
# What the tests below check on texts in their place, and why the rest does not apply.
ON_TEXTS = {
    "check_fit_score_takes_y": "test_fit_keeps_to_the_contract",
    "check_estimators_overwrite_params": "test_fit_keeps_to_the_contract",
    "check_dont_overwrite_parameters": "test_fit_keeps_to_the_contract",
    "check_estimators_fit_returns_self": "test_fit_keeps_to_the_contract",
    "check_estimators_unfitted": "test_an_unfitted_estimator_says_so",
    "check_dict_unchanged": "test_fit_keeps_to_the_contract",
    "check_fit_idempotent": "test_fit_keeps_to_the_contract",
    "check_fit_check_is_fitted": "test_an_unfitted_estimator_says_so",
    "check_methods_sample_order_invariance": "test_rows_are_predicted_apart",
    "check_methods_subset_invariance": "test_rows_are_predicted_apart",
    "check_estimators_pickle": "test_a_fitted_estimator_is_pickled_with_its_files",
    "check_classifiers_classes": "test_classes_are_those_of_y",
    "check_classifiers_train": "test_classes_are_those_of_y",
    "check_requires_y_none": "test_what_is_no_data_is_refused",
    "check_supervised_y_no_nan": "test_what_is_no_data_is_refused",
    "check_classifiers_one_label": "test_what_is_no_data_is_refused",
}
DOES_NOT_APPLY = {
    "n_features_in": "a text has no number of features",
    "feature_names": "texts are one column",
    "sparse": "texts are no matrix",
    "nan_inf": "texts hold no infinity; what is missing is refused above",
    "dtype": "texts have one type",
    "complex": "texts have one type",
    "memmap": "arrays of texts are copied into strings",
    "array_api": "texts stay in Python",
    "positive_only": "texts have no sign",
    "sample_weight": "rows are weighted alike",
    "class_weight": "rows are weighted alike",
    "1sample": "a tenth of the rows is held out, so ten are needed",
    "1feature": "texts are one column",
    "fit1d": "rows of texts have one dimension, as they should",
    "fit2d": "two columns are pairs of texts",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    table = read_table(write_reviews(tmp_path_factory.mktemp("rows") / "reviews.csv", 60))
    return [row["text"] for row in table], [row["label"] for row in table]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", OF_NO_ROWS)
def test_checks_of_scikit_learn_that_need_no_rows(kind: type, name: str) -> None:
    check = getattr(checks, name, None)
    if check is None:
        pytest.skip("this version of scikit-learn has no such check")
    check(kind.__name__, kind())


def test_the_checks_that_are_replaced_are_tested_here() -> None:
    tests = [value for value in ON_TEXTS.values() if value not in globals()]
    assert tests == []
    assert all(DOES_NOT_APPLY.values())
    with warnings.catch_warnings(record=True) as said:  # it makes no rows of texts itself
        warnings.simplefilter("always")
        checks.check_estimator(TotuneClassifier(), on_skip=None)
    assert any("Can't test estimator TotuneClassifier" in str(w.message) for w in said)


@pytest.mark.parametrize("kind", ESTIMATORS[:3])
def test_an_unfitted_estimator_says_so(kind: Any) -> None:
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        kind().predict([["a"]] if kind is TotuneTagger else ["a"])
    with pytest.raises(NotFittedError):
        kind().score(["a"], ["b"])


def test_fit_keeps_to_the_contract(rows: tuple[list[str], list[str]]) -> None:
    estimator = TotuneClassifier("tf-idf", options={"ngrams": 2})
    before = dict(estimator.get_params())
    assert estimator.fit(*rows) is estimator
    assert estimator.get_params() == before
    first = estimator.predict_proba(rows[0])
    state = set(vars(estimator))
    assert estimator.score(*rows) == np.mean(estimator.predict(rows[0]) == rows[1])
    assert set(vars(estimator)) == state
    np.testing.assert_array_equal(estimator.fit(*rows).predict_proba(rows[0]), first)
    assert not hasattr(clone(estimator), "model_")


def test_rows_are_predicted_apart(rows: tuple[list[str], list[str]]) -> None:
    texts = rows[0]
    model = TotuneClassifier("tf-idf").fit(*rows)
    expected = model.predict_proba(texts)
    backwards = model.predict_proba(texts[::-1])[::-1]
    np.testing.assert_allclose(backwards, expected, atol=1e-6)
    alone = np.vstack([model.predict_proba([text]) for text in texts[:5]])
    np.testing.assert_allclose(alone, expected[:5], atol=1e-6)


@pytest.mark.parametrize(
    "classes",
    [["b", "a"], [0, 1], [1.0, 2.0], [True, False], ["1", "10"], ["x", "yy"]],
    ids=str,
)
def test_classes_are_those_of_y(rows: tuple[list[str], list[str]], classes: Any) -> None:
    texts, labels = rows
    y = np.asarray([classes[label == "praise"] for label in labels])
    model = TotuneClassifier("tf-idf").fit(np.array(texts), y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    found = model.predict(texts)
    assert found.dtype == y.dtype
    assert np.mean(found == y) > 0.9
    chances = model.predict_proba(texts)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], found)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)


def test_columns_of_frames_and_pairs_are_read(rows: tuple[list[str], list[str]]) -> None:
    texts, labels = rows
    frame = pd.DataFrame({"first": texts, "second": texts[::-1], "label": labels})
    model = TotuneClassifier("tf-idf").fit(frame[["first"]], frame["label"])
    assert list(model.predict(frame["first"])) == list(model.predict(texts))
    pairs = TotuneClassifier("tf-idf").fit(frame[["first", "second"]], frame["label"])
    assert pairs.model_.takes_pairs
    assert len(pairs.predict(list(zip(texts, texts, strict=True)))) == len(texts)


def test_a_fitted_estimator_is_pickled_with_its_files(rows: tuple[list[str], list[str]]) -> None:
    model = TotuneClassifier("tf-idf").fit(*rows)
    expected = model.predict_proba(rows[0])
    packed = pickle.dumps(model)
    assert model.predict(rows[0][:1]).shape == (1,)
    folder = model._kept.path
    del model
    assert not folder.exists()
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.predict_proba(rows[0]), expected)
    assert pickle.loads(pickle.dumps(TotuneClassifier("last-2"))).strategy == "last-2"


def test_it_is_searched_and_validated(rows: tuple[list[str], list[str]]) -> None:
    scores = cross_val_score(TotuneClassifier("tf-idf"), *rows, cv=2)
    assert scores.shape == (2,)
    grid = {"strategy": ["majority", totune.TfIdf(ngrams=2)]}
    found = GridSearchCV(TotuneClassifier(), grid, cv=2).fit(*rows)
    assert found.best_params_["strategy"] == totune.TfIdf(ngrams=2)
    assert found.best_score_ > 0.8


def test_vectors_stand_in_a_pipeline(
    rows: tuple[list[str], list[str]], encoder: str, cache: Path
) -> None:
    features = TotuneFeatures(encoder, cache_dir=cache)
    vectors = features.fit_transform(rows[0])
    assert vectors.shape == (60, len(features.get_feature_names_out()))
    again = TotuneFeatures(encoder, cache_dir=cache, layer=1).set_output(transform="pandas")
    assert not np.allclose(again.fit_transform(rows[0]).to_numpy(), vectors)
    pipeline = make_pipeline(TotuneFeatures(encoder, cache_dir=cache), LogisticRegression())
    assert cross_val_score(pipeline, *rows, cv=2).shape == (2,)
    with pytest.raises(ConfigError, match=r"layer=9: .* has the layers 0 to"):
        TotuneFeatures(encoder, layer=9).transform(rows[0])
    with pytest.raises(ConfigError, match="pooling='x' is none of"):
        TotuneFeatures(encoder, pooling="x").transform(rows[0])


def test_scores_are_regressed(tmp_path: Path) -> None:
    table = read_table(write_scores(tmp_path / "scores.csv", 60))
    texts, scores = [row["text"] for row in table], [float(row["score"]) for row in table]
    model = TotuneRegressor("tf-idf").fit(texts, scores)
    assert model.predict(texts).dtype == np.float64
    assert model.score(texts, scores) > 0.5


def test_words_are_tagged() -> None:
    words = [[f"w{i}", "Paris", "is", "here"][: 2 + i % 3] for i in range(30)]
    tags = [["O", "B-LOC", "O", "O"][: len(row)] for row in words]
    model = TotuneTagger("most-frequent-tag").fit(words, tags)
    assert list(model.classes_) == ["B-LOC", "O"]
    assert model.predict([["in", "Paris"]]) == [["O", "B-LOC"]]
    assert model.score(words, tags) == 1.0
    assert cross_val_score(TotuneTagger("most-frequent-tag"), words, tags, cv=2).mean() == 1.0


def test_auto_compares_and_keeps_the_best(
    rows: tuple[list[str], list[str]], encoder: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("totune.estimators.AUTO", ("majority", "tf-idf"))
    model = TotuneClassifier("auto", model=encoder, cache_dir=cache).fit(*rows)
    assert model.strategy_ == "tf-idf"
    assert "tf-idf" in model.answer_
    assert [path.name for path in model._kept.path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("X", "y", "kind", "message"),
    [
        (["a"] * 20, ["x", "y"] * 9, ValueError, "X and y differ in length: 20 texts, 18 labels"),
        (["a"] * 20, None, ValueError, "requires y to be passed, but the target y is None"),
        (["a", float("nan")] * 10, ["x", "y"] * 10, DataError, "Item 1 of the list is nan"),
        (["a", "b"] * 10, ["x", float("nan")] * 10, DataError, r"y\[1\] is nan, not a label"),
        (["a", "b"] * 10, ["x"] * 20, DataError, "one class, 'x'; there is nothing to learn"),
        (["a", "b"], ["x", "y"], DataError, "TotuneClassifier has 2 usable rows; at least 10"),
        ("a text", ["x"], ValueError, "X is str, not a list of texts"),
        (np.zeros((20, 3)), ["x", "y"] * 10, ValueError, r"X is ndarray of shape \(20, 3\), not"),
        (np.zeros(20), ["x", "y"] * 10, DataError, "Item 0 of the list is .*0.0"),
    ],
)
def test_what_is_no_data_is_refused(X: Any, y: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        TotuneClassifier("tf-idf").fit(X, y)
