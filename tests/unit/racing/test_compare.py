"""A race from end to end, with an encoder that is tiny."""

import json
from pathlib import Path

import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews

from totune.api import compare
from totune.errors import ConfigError
from totune.study.study import Study


def test_a_study_is_raced_told_and_raced_again_for_nothing(tmp_path: Path) -> None:
    encoder = save_encoder(tmp_path / "encoder")
    data = write_reviews(tmp_path / "reviews.csv", rows=80)
    options = {"feature-extraction.num_train_epochs": 1}
    settings = {
        "model": str(encoder),
        "strategies": ["tf-idf", "feature-extraction"],
        "seeds": 3,
        "race": True,
        "race_fraction": 0.5,
        "options": options,
        "cache_dir": tmp_path / "cache",
    }
    out = tmp_path / "study"
    study = compare(data, out=out, **settings)
    race = study.race
    assert race is not None
    assert [made.fraction for made in race.rounds[:2]] == [0.5, 1.0]
    assert race.seconds > 0
    assert study.advice.best == "tf-idf"  # a word decides; the tiny encoder knows none
    assert set(study.info.runs) == {record.fingerprint for record in study.records}
    assert len(study.records) == sum(len(made.strategies) for made in race.rounds[1:])
    assert json.loads((out / "study.json").read_text())["settings"]["race"] is True
    assert "## Race" in (out / "report.md").read_text()
    assert study.best.is_dir()

    told = Recorder()
    again = compare(data, out=out, progress=told, **settings)
    assert not [line for line in told.said if line.startswith("run ")]
    assert repr(again.race) == repr(race)
    assert str(Study(out).advice) == str(study.advice)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"race": True, "seeds": 1}, "A race needs at least 2 seeds"),
        ({"race_fraction": 0.5}, "add `race=True`"),
        ({"race": True, "race_fraction": 1.0}, "above 0 and below 1"),
    ],
)
def test_settings_that_make_no_race_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compare("nowhere.csv", **settings)
