"""What the version before the rebuild wrote still opens (`tests/fixtures/before_one_house`)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.recorder import Recorder

import totune
from totune.study.study import Study

FIXTURES = Path(__file__).parents[1] / "fixtures" / "before_one_house"
SETTINGS = {
    "strategies": ["tf-idf", "feature-extraction", "last-1"],
    "seeds": 2,
    "precision": "fp32",
    "options": {"num_train_epochs": 2},
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES, tmp_path / "before")
    return tmp_path / "before"


def again(place: Path, told: Recorder) -> Study:
    """The command that made the study."""
    return totune.compare(
        place / "reviews.csv",
        out=place / "study",
        model=str(place / "encoder"),
        cache_dir=place / "cache",
        progress=told,
        **SETTINGS,
    )


def inodes(cache: Path) -> dict[str, int]:
    """A file that is written anew has another number."""
    return {path.name: path.stat().st_ino for path in cache.glob("*.features")}


def test_a_study_is_read_and_reported(place: Path) -> None:
    study = Study(place / "study")
    assert [(r.strategy, r.seed) for r in study.records] == [
        (name, seed)
        for name in SETTINGS["strategies"]
        for seed in (0, 1)  # type: ignore[attr-defined]
    ]
    assert "last-1" in study.report().html.read_text(encoding="utf-8")


def test_the_same_command_runs_nothing_again(place: Path) -> None:
    told = Recorder()
    before = [record.to_json() for record in Study(place / "study").records]
    assert [record.to_json() for record in again(place, told).records] == before
    assert not [said for said in told.said if said.startswith("run ")]


def test_frozen_features_are_found_in_the_cache(place: Path) -> None:
    lost = next(r for r in Study(place / "study").records if r.strategy == "feature-extraction")
    shutil.rmtree(place / "study" / "runs" / lost.fingerprint)
    entries = inodes(place / "cache")
    told = Recorder()
    found = next(r for r in again(place, told).records if r.fingerprint == lost.fingerprint)
    assert [said for said in told.said if said.startswith("run ")]
    assert found.test == lost.test
    assert inodes(place / "cache") == entries


def test_a_model_gives_the_answers_that_it_gave(place: Path) -> None:
    model = totune.load(place / "model", str(place / "encoder"))
    expected = json.loads((place / "predictions.json").read_text(encoding="utf-8"))
    assert model.predict(expected["texts"]) == expected["labels"]
    found = model.predict_proba(expected["texts"])
    np.testing.assert_allclose(found, expected["probabilities"], atol=1e-4)
