"""A study of few rows from its settings to its report: folds, resuming, the final model."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews, write_scores, write_table

import totune
from totune.data.folds import ALL_ROWS
from totune.data.sources import load_dataset
from totune.errors import ConfigError, DataError
from totune.export.files import read_seen
from totune.progress import Progress
from totune.registry import build
from totune.runs.executors.base import SerialExecutor
from totune.runs.prepare import prepare
from totune.runs.reopen import reopen
from totune.runs.run import configure, on_all_rows
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.study.study import Study

pytestmark = pytest.mark.usefixtures("cache")
Compare = Callable[..., Study]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few")
    save_encoder(folder / "encoder")
    write_reviews(folder / "reviews.csv", 60)
    return folder


def compare(place: Path, out: str, told: Progress | None = None, **settings: Any) -> Study:
    given = {
        "model": str(place / "encoder"),
        "strategies": ["majority", "tf-idf"],
        "cache_dir": place / "cache",
        **settings,
    }
    data = given.pop("data", place / "reviews.csv")
    return totune.compare(data, out=place / out, progress=told or Progress(), **given)


@pytest.fixture(scope="module")
def study(place: Path) -> Study:
    return compare(place, "study")


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the report of `study` is drawn, since pictures take longer than these runs."""
    monkeypatch.setattr(Study, "report", lambda _: None)


def test_few_rows_are_cross_validated_unasked(study: Study) -> None:
    assert study.info.folds == 5
    assert study.info.seeds == [0, 1]
    assert len(study.records) == 2 * 2 * 5
    assert len({record.fingerprint for record in study.records}) == 20
    assert {record.config["fold"] for record in study.records} == {1, 2, 3, 4, 5}
    assert len(study.results) == 4
    [tfidf] = [each for each in study.advice.standings if each.strategy == "tf-idf"]
    assert tfidf.predictions.shape == (2, 60)
    assert tfidf.n_folds == 5
    assert tfidf.seeds == 2
    assert study.info.data["rows"] == {"all": 60, "train": 43, "dev": 5, "test": 12}


def test_the_verdict_stands_on_all_rows(study: Study) -> None:
    assert study.advice.recommended == "tf-idf"
    [found] = study.advice.comparisons
    assert found.verdict == "credibly worse"
    score = np.mean([run.test["accuracy"] for run in study.results if run.strategy == "tf-idf"])
    assert study.advice.standings[1].score.mean == pytest.approx(score)
    text = str(study.advice)
    assert "mean of 2 repetitions" in text or "same with each of 2 repetitions" in text
    assert "every one of the 60 rows is predicted by a model that did not train on it" in text


def test_the_model_is_trained_on_all_rows(place: Path, study: Study) -> None:
    final = Store(study.folder).record(study.info.final)
    assert final is not None
    assert final.config["fold"] == ALL_ROWS
    assert final.test == {}
    assert final.fingerprint not in study.info.runs
    assert "The model in best/ (tf-idf) was trained on all 60 rows" in str(study.advice)
    model = totune.load(study.best)
    assert model.about["metrics"] == {"dev": {}, "test": {}}
    reviews = load_dataset(place / "reviews.csv", folds=5)
    assert reviews.folds is not None
    assert read_seen(study.best).count(reviews.folds.rows) == (60, 60)
    assert model.predict(["w0 w7"])


def test_the_same_command_runs_nothing_and_more_seeds_run_what_is_missing(
    place: Path, study: Study
) -> None:
    told = Recorder()
    again = compare(place, "study", told)
    assert not [line for line in told.said if line.startswith("run ")]
    assert str(again.advice) == str(study.advice)
    more = compare(place, "study", told, seeds=3)
    assert len([line for line in told.said if line.startswith("run ")]) == 10
    assert len(more.records) == 30
    compare(place, "study", told)


def test_the_report_and_json_tell_of_folds(study: Study) -> None:
    text = (study.folder / "report.md").read_text()
    assert "5-fold cross-validation · 20 runs" in text
    assert "| Repetitions |" in text
    assert "| Fold |" in text
    assert "Welch" not in text
    found = study.to_json()
    assert found["folds"] == 5
    assert {run["fold"] for run in found["runs"]} == {1, 2, 3, 4, 5}
    standings = {each["strategy"]: each for each in found["advice"]["standings"]}
    assert (standings["tf-idf"]["rows"], standings["tf-idf"]["folds"]) == (60, 5)
    json.dumps(found, allow_nan=False)


def test_a_person_is_told_before_training_how_many_runs_there_are(place: Path) -> None:
    told = Recorder()
    compare(place, "told", told, folds=3, seeds=1)
    plan = "6 runs: 2 strategies x 1 repetition of 3 folds; then the recommended one is trained"
    assert [line for line in told.said if line.startswith(plan)]
    first = next(at for at, line in enumerate(told.said) if line.startswith("run 1/6"))
    assert first > next(at for at, line in enumerate(told.said) if line.startswith(plan))
    assert told.said[first] == "run 1/6: majority, seed 0 fold 1"


def test_a_repetition_that_failed_in_one_fold_is_counted(study: Study) -> None:
    broken = replace(study.records[-1], status="failed", error="no memory")
    before = study.records
    study.records = [*before[:-1], broken]
    del study.__dict__["_pooled"], study.__dict__["advice"]
    text = str(study.advice)
    study.records = before
    del study.__dict__["_pooled"], study.__dict__["advice"]
    assert "1 of 2 repetitions of tf-idf failed (fold 5: no memory); the mean leaves them" in text


def test_a_tuned_model_keeps_its_last_epoch(place: Path) -> None:
    options = {"num_train_epochs": 2}
    settings = {"strategies": ["last-1"], "seeds": 1, "folds": 3, "options": options}
    study = compare(place, "tuned", **settings)
    final = Store(study.folder).record(study.info.final)
    assert final is not None
    assert (final.best_epoch, final.dev) == (2, {})
    assert "options, to its last epoch." in str(study.advice)
    assert totune.load(study.best).predict(["w0"])
    assert {epoch.cached for record in study.records for epoch in record.epochs} == {True}


def test_a_fold_reads_the_features_of_all_rows(place: Path) -> None:
    settings = {"model": str(place / "encoder"), "cache_dir": place / "apart", "folds": 3}
    chosen = build(Settings, settings, "compare")
    context = prepare(place / "reviews.csv", chosen, Progress())
    candidates = build(Settings, {"strategies": ["sentence-embedding"]}, "compare").candidates()
    runs = configure(candidates, [0, 1], context)
    store = Store(place / "features")
    records = [run.execute(context, store) for run in (*runs, on_all_rows(runs[0]))]
    assert [record.status for record in records] == ["finished"] * 7
    assert len(list((place / "apart").glob("*.features"))) == 1
    once = replace(context.of_run(runs[1].config), folds=None)  # computes its own
    own = once.embed(once.dataset.test)
    np.testing.assert_allclose(
        context.of_run(runs[1].config).embed(once.dataset.test), own, atol=1e-5
    )


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_and_a_race_of_folds(place: Path, jobs: int) -> None:
    settings = {"seeds": 2, "race": True, "search_trials": 2, "jobs": jobs}
    study = compare(place, f"raced {jobs}", folds=3, **settings)
    assert study.race is not None
    assert study.race.rounds[0].seeds == (0,)
    assert study.advice.provisional == "tf-idf"
    assert "of the first fold, some of which other folds test on" in str(study.advice)
    assert study.info.final


def test_scores_are_cross_validated_too(place: Path) -> None:
    data = write_scores(place / "scores.csv", 60)
    study = compare(place, "scores", data=data, strategies=["majority", "tf-idf"])
    assert study.info.folds == 5
    assert study.advice.best == "tf-idf"


def test_an_analysis_looks_into_the_first_fold(place: Path, study: Study) -> None:
    told = Recorder()
    changes = {"model": str(place / "encoder"), "cache_dir": place / "cache"}
    context, _, records = reopen(study.folder, place / "reviews.csv", changes, told)
    assert {(record.seed, record.fold) for record in records} == {(0, 1)}
    assert context.folds is None
    assert any("the first fold is looked into" in line for line in told.said)


def test_dev_stands_for_test(place: Path) -> None:
    train = write_reviews(place / "train.csv", 80)
    dev = write_reviews(place / "dev.csv", 40, seed=1)
    files = {"data": None, "train": str(train), "dev": str(dev), "evaluate_on": "dev"}
    options = {"num_train_epochs": 2}
    study = compare(
        place, "glue", strategies=["tf-idf", "last-1"], options=options, seeds=2, **files
    )
    assert study.info.folds == 1
    assert study.info.data["rows"] == {"train": 80, "dev": 0, "test": 40}
    assert "train" not in study.info.settings
    assert {record.best_epoch for record in study.records if record.epochs} == {2}
    assert all(record.dev == {} for record in study.records)
    model = totune.train(
        strategy="tf-idf",
        out=place / "model",
        model=str(place / "encoder"),
        train=str(train),
        dev=str(dev),
        evaluate_on="dev",
    )
    assert model.about["metrics"]["test"] == study.records[0].test


def test_an_older_study_of_one_split_goes_on_as_it_was(place: Path) -> None:
    study = compare(place, "old", folds=1, seeds=2)
    told = Recorder()
    again = compare(place, "old", told, seeds=2)
    assert again.info.folds == 1
    assert study.info.runs == again.info.runs
    assert not [line for line in told.said if line.startswith("run ")]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"folds": 5, "test_size": 0.2}, "folds=5 tests on every row of train, so test_size=0.2"),
        ({"folds": 5, "test": "t.csv"}, "so test='t.csv' has nothing to do"),
        (
            {"evaluate_on": "dev", "folds": 3},
            "evaluate_on='dev' tests on the dev split, so folds=3",
        ),
        ({"evaluate_on": "dev", "test": "t.csv"}, "so test='t.csv' has nothing"),
        ({"evaluate_on": "dev", "test_size": 0.1}, "so test_size=0.1 has nothing"),
        ({"evaluate_on": "dev", "search_trials": 3}, "A search chooses options on dev"),
        ({"folds": 3, "race": True, "race_fraction": 0.5}, "race_fraction=0.5 begins on a share"),
        ({"folds": 0}, "folds=0 is out of range"),
    ],
)
def test_contradictions_are_told_before_anything_is_read(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        totune.compare("nowhere.csv", **settings)
    assert len(raised.value.faults) == 1


@pytest.mark.parametrize(
    ("data", "settings", "told"),
    [
        (None, {}, "No data was named"),
        (None, {"dev": "d.csv"}, "No data was named"),
        ("a.csv", {"train": "b.csv"}, "The train rows are named twice"),
        (".", {"test": "t.csv"}, "`test` can be added to a train file, and . is none"),
        ("hub:glue", {"dev": "d.csv", "test": "t.csv"}, "`dev` and `test` can be added"),
    ],
)
def test_data_is_named_once(data: str | None, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Settings(**settings).source(data)


def test_groups_that_hide_a_class_are_told_before_training(place: Path) -> None:
    rows = [(f"w{i % 30} w{i % 7}", f"author {i % 10}", "ab"[i % 2]) for i in range(60)]
    rows += [(f"w{i} rare", "author 10", "c") for i in range(6)]
    data = write_table(place / "authors.csv", ("text", "author", "label"), rows)
    with pytest.raises(DataError, match=r"does not train on \('c': 6\)"):
        compare(place, "authors", data=data, group="author")
    assert not (place / "authors" / "runs").exists()


def test_an_executor_gets_fold_by_fold(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = []
    perform = SerialExecutor.perform

    def noting(self: Any, jobs: Any, *more: Any) -> Any:
        titles.extend(job.title for job in jobs)
        return perform(self, jobs, *more)

    monkeypatch.setattr(SerialExecutor, "perform", noting)
    compare(place, "order", folds=3, seeds=1)
    ends = [title.split(": ")[1] for title in titles[:4]]
    assert ends[:3] == [
        "majority, seed 0 fold 1",
        "tf-idf, seed 0 fold 1",
        "majority, seed 0 fold 2",
    ]
