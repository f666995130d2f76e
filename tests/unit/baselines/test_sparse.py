import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.pipeline import make_pipeline
from tests.unit.baselines.samples import BAD, GOOD, NEW, PAIRS, SCORES, THREE, TWO, predicted

from totune.baselines.base import BASELINES
from totune.baselines.text_features import features
from totune.data.examples import Examples
from totune.errors import ConfigError, DataError
from totune.tasks.base import UNKNOWN
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

VECTORIZERS = {
    "tf-idf": TfidfVectorizer,
    "counts": CountVectorizer,
    "hashing": HashingVectorizer,
}


def fitted(name: str, train: Examples, task, **options):
    baseline = BASELINES.create(name, options)
    return baseline.fit(train, task.targets(train.labels or ()), task, seed=0, embed=None)


@pytest.mark.parametrize("name", VECTORIZERS)
@pytest.mark.parametrize("train", [TWO, THREE], ids=["two classes", "three classes"])
def test_probabilities_are_those_of_the_plain_pipeline(name: str, train: Examples):
    task = Classification.from_examples(train)
    size = {"n_features": 2**12} if name == "hashing" else {}
    exact = LogisticRegression(max_iter=5000, tol=1e-9)
    pipeline = make_pipeline(VECTORIZERS[name](**size), exact)
    pipeline.fit(list(train.texts), list(train.labels))
    outputs = fitted(name, train, task, **size).outputs(NEW)
    assert list(pipeline.classes_) == list(task.labels)
    np.testing.assert_allclose(np.exp(outputs), pipeline.predict_proba(NEW.texts), atol=1e-5)
    np.testing.assert_allclose(task.scores(outputs), np.exp(outputs), rtol=1e-5)


@pytest.mark.parametrize("name", VECTORIZERS)
def test_scores_are_those_of_ridge_regression(name: str):
    task = Regression.from_examples(SCORES)
    pipeline = make_pipeline(VECTORIZERS[name](), Ridge(alpha=0.25, tol=1e-10))
    pipeline.fit(list(SCORES.texts), list(SCORES.labels))
    predictions = predicted(task, fitted(name, SCORES, task, C=2.0).outputs(NEW))
    np.testing.assert_allclose(predictions, pipeline.predict(NEW.texts), atol=2e-3)


def test_hashing_trains_only_what_rows_hold():
    task = Classification.from_examples(TWO)
    words = set(CountVectorizer().fit(TWO.texts).vocabulary_)
    assert fitted("hashing", TWO, task).parameters == len(words) + 1


def test_ngrams_add_runs_of_words():
    task = Classification.from_examples(TWO)
    runs = CountVectorizer(ngram_range=(1, 2)).fit(TWO.texts).vocabulary_
    assert fitted("counts", TWO, task, ngrams=2).parameters == len(runs) + 1


def test_max_features_keeps_the_most_frequent():
    task = Classification.from_examples(TWO)
    assert fitted("tf-idf", TWO, task, max_features=5).parameters == 5 + 1


def test_a_smaller_c_pulls_towards_even_odds():
    task = Classification.from_examples(TWO)
    free = np.exp(fitted("counts", TWO, task, C=10.0).outputs(TWO)).max(axis=1)
    held = np.exp(fitted("counts", TWO, task, C=0.01).outputs(TWO)).max(axis=1)
    assert (held < free).all()


def test_a_pair_is_both_texts_their_difference_product_and_cosine():
    vectorizer = CountVectorizer().fit([*PAIRS.texts, *PAIRS.pairs])
    first = vectorizer.transform(PAIRS.texts).toarray().astype(float)
    second = vectorizer.transform(PAIRS.pairs).toarray().astype(float)
    cosine = 1 - paired_cosine_distances(first, second)
    expected = np.hstack([first, second, abs(first - second), first * second, cosine[:, None]])
    np.testing.assert_allclose(features(vectorizer, PAIRS).toarray(), expected, atol=1e-12)


def test_a_text_without_known_words_has_cosine_zero():
    vectorizer = CountVectorizer().fit(TWO.texts)
    unknown = Examples(texts=("zzz", "dull"), pairs=("dull", "dull"))
    assert features(vectorizer, unknown).toarray()[:, -1].tolist() == [0.0, 1.0]


def test_order_of_a_pair_matters():
    task = Classification.from_examples(PAIRS)
    model = fitted("counts", PAIRS, task)
    turned = Examples(texts=PAIRS.pairs, pairs=PAIRS.texts)
    assert not np.allclose(model.outputs(PAIRS), model.outputs(turned))


@pytest.mark.parametrize("name", VECTORIZERS)
def test_texts_without_words_are_a_data_fault(name: str):
    train = Examples(texts=("!", "?", "a"), labels=("x", "y", "x"))
    task = Classification.from_examples(train)
    with pytest.raises(DataError, match=rf"{name} counts words .* none of the 3 training rows"):
        fitted(name, train, task)


def test_one_label_is_a_data_fault():
    train = Examples(texts=GOOD, labels=("pos",) * 4)
    task = Classification.from_examples(TWO)
    with pytest.raises(DataError, match=r"at least two labels .* 4 training rows have 'pos'"):
        fitted("tf-idf", train, task)


def test_a_class_without_training_rows_is_never_predicted():
    task = Classification.from_examples(THREE)
    outputs = fitted("tf-idf", TWO, task).outputs(THREE)
    assert outputs.shape == (12, 3)
    assert (np.exp(outputs[:, task.labels.index("mid")]) < 1e-40).all()


def test_rows_of_unknown_labels_are_left_out():
    task = Classification.from_examples(TWO)
    more = Examples(texts=(*TWO.texts, "a lovely dull film"), labels=(*TWO.labels, "else"))
    baseline = BASELINES.create("hashing")
    targets = task.targets(more.labels)
    assert targets[-1] == UNKNOWN
    outputs = baseline.fit(more, targets, task, 0, None).outputs(NEW)
    np.testing.assert_allclose(outputs, fitted("hashing", TWO, task).outputs(NEW), atol=1e-4)


def test_raw_counts_of_long_texts_converge_in_silence():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(400)])
    texts = tuple(" ".join(words[rng.integers(0, 400, 800)]) for _ in range(60))
    train = Examples(texts=texts, labels=tuple("ab"[i % 2] for i in range(60)))
    task = Classification.from_examples(train)
    outputs = fitted("counts", train, task, C=1000.0).outputs(train)
    assert (predicted(task, outputs) == task.targets(train.labels)).all()


def test_wrong_options_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        BASELINES.create("tf-idf", {"ngrams": 0, "C": -1, "maxfeatures": 3})
    told = str(caught.value)
    assert "ngrams=0" in told
    assert "C=-1" in told
    assert "Did you mean 'max_features'?" in told


def test_bad_words_are_bad():
    task = Classification.from_examples(TWO)
    outputs = fitted("tf-idf", TWO, task).outputs(Examples(texts=BAD))
    assert task.decode(predicted(task, outputs)) == ["neg"] * 4
