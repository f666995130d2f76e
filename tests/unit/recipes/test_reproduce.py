import json

import pytest
from tests.recorder import Recorder
from tests.unit.recipes.samples import write_tweets

from totune.errors import ConfigError, DataError
from totune.recipes.reproduce import reproduce


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tweets")
    write_tweets(folder)
    return folder


@pytest.fixture(scope="module")
def reproduced(data):
    """The folder of a recipe that ran, and what was said meanwhile."""
    progress = Recorder()
    folder = reproduce("hart-sparse", data_dir=data, out=data / "out", model="x", progress=progress)
    return folder, progress.said


def test_a_recipe_runs_from_file_to_report(reproduced):
    folder, said = reproduced
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html",
        "report.md",
        "results.json",
    ]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["recipe"]["name"] == "hart-sparse"
    assert "scikit-learn" in results["versions"]
    assert len(results["groups"]) == 3
    assert results["groups"][0]["outcomes"][0]["summary"]["accuracy"]["n"] == 10
    assert "Hart" in (folder / "report.md").read_text(encoding="utf-8")
    assert said == ["hart-sparse uses no encoder, so the model x is not loaded."]


def test_it_is_repeatable(reproduced, data):
    first, second = reproduced[0], reproduce("hart-sparse", data_dir=data, out=data / "again")
    for name in ("results.json", "report.md", "report.html"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_faults_are_reported_before_anything_is_read(tmp_path):
    with pytest.raises(ConfigError) as caught:
        reproduce("hart-sparse", data_dir=tmp_path, fraction=1.5, seeds=0)
    assert len(caught.value.faults) == 2


def test_missing_data_leaves_no_folder_behind(tmp_path):
    with pytest.raises(DataError, match="Kaggle"):
        reproduce("hart-sparse", data_dir=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
