import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from tests.recorder import Recorder
from tests.unit.recipes.samples import sparse_recipe, write_tweets

from totune.data.examples import Examples
from totune.errors import DataError
from totune.progress import Progress
from totune.recipes.cross_validation import cross_validate, folds


def run(tmp_path, fraction=1.0, seeds=1, progress=None, rows=3):
    recipe = sparse_recipe(rows=sparse_recipe().rows[:rows])
    file = write_tweets(tmp_path)
    return cross_validate(recipe, recipe.run, file, fraction, seeds, progress or Progress())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(tmp_path_factory.mktemp("tweets"))


def test_every_row_has_a_value_per_fold_under_every_protocol(results):
    assert [group.title for group in results.groups] == [
        protocol.title for protocol in sparse_recipe().run.protocols
    ]
    for group in results.groups:
        assert [outcome.label for outcome in group.outcomes] == ["TF-IDF", "Count", "Hash"]
        assert {outcome.count for outcome in group.outcomes} == {10}


def test_scores_are_those_of_scikit_learns_own_cross_validation(results, tmp_path):
    lines = write_tweets(tmp_path).read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split(",")[3] for line in lines]
    labels = np.array([int(line.split(",")[4]) for line in lines])
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    for group, shuffle in ((results.groups[0], True), (results.groups[2], False)):
        splitter = StratifiedKFold(10, shuffle=shuffle, random_state=0 if shuffle else None)
        for metric in ("accuracy", "f1"):
            expected = cross_val_score(pipeline, texts, labels, cv=splitter, scoring=metric)
            np.testing.assert_allclose(group.outcomes[1].scores[metric], expected, atol=1e-12)


def test_more_seeds_deal_the_rows_anew(results, tmp_path):
    progress = Recorder()
    twice = run(tmp_path, seeds=2, progress=progress, rows=2)
    assert [group.outcomes[0].count for group in twice.groups] == [20, 20, 10]
    scores = twice.groups[0].outcomes[0].scores["accuracy"]
    assert scores[:10] == results.groups[0].outcomes[0].scores["accuracy"]
    assert scores[10:] != scores[:10]
    [(_, total)] = progress.bars
    assert sum(progress.steps) == total == 2 * (20 + 20 + 10)


def test_a_fraction_uses_that_share_of_the_rows(tmp_path):
    results = run(tmp_path, fraction=0.5, rows=1)
    assert results.facts["data"]["rows"] == 40
    assert results.facts["data"]["labels"] == {"0": 24, "1": 16}
    assert results.fraction == 0.5


def test_too_few_rows_of_a_label_are_a_data_fault(tmp_path):
    with pytest.raises(DataError, match=r"10 folds need 10 rows.* has 5\. Use a larger `fraction`"):
        run(tmp_path, fraction=0.15)


def test_folds_are_stretches_unless_shuffled():
    rows = Examples(texts=tuple("abcdef"), labels=("x", "y") * 3)
    assert [test.tolist() for _, test in folds(rows, "classification", 3, None)] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    for train, test in folds(rows, "classification", 3, 0):
        assert sorted([*train, *test]) == list(range(6))
        assert {rows.labels[at] for at in test} == {"x", "y"}
