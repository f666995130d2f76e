"""Records of races that an earlier version wrote."""

import json
import shutil
from pathlib import Path

from totune.racing.records import FILE, read_race
from totune.study.study import Study

BEFORE = Path(__file__).parents[2] / "fixtures" / "before_one_house" / "race"


def test_an_earlier_race_is_read_with_the_names_of_today() -> None:
    race = read_race(BEFORE)
    assert race is not None
    assert {name: gone.reason for name, gone in race.eliminated.items()} == {
        "last-2": "keeps up",
        "lora": "more expensive",
        "tf-idf": "worse",
    }
    assert [len(made.strategies) for made in race.rounds] == [4, 4]
    assert race.seconds == 152.0


def test_an_earlier_race_is_written_anew_without_loss(tmp_path: Path) -> None:
    race = read_race(BEFORE)
    assert race is not None
    race.save(tmp_path)
    assert repr(read_race(tmp_path)) == repr(race)
    written = json.loads((tmp_path / FILE).read_text())
    assert set(written) - {"sha256"} == set(json.loads((BEFORE / FILE).read_text()))


def test_an_earlier_race_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(BEFORE, folder)
    study = Study(folder)
    assert study.advice.recommended == "last-2"
    assert {c.strategy: c.verdict for c in study.advice.comparisons} == {
        "last-2": "as good",
        "lora": "open",
        "tf-idf": "credibly worse",
    }
    report = study.report().markdown.read_text()
    assert (
        "lora leaves the race: it costs more than one that keeps up with fine-tuning within 10.0 "
        "points." in report
    )
    assert "| lora | 2 | 2 | fine-tuning | 10.9 (8.5 to 13.3) | more expensive than" in report
