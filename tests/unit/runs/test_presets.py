"""What presets choose, what holds against them, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.tiny_data import write_reviews

import totune
from totune.errors import ConfigError
from totune.registry import build
from totune.runs.settings import Settings
from totune.study.study import Study


def chosen(preset: str, **settings: Any) -> tuple[Settings, str]:
    made = build(Settings, {"preset": preset, **settings}, "compare")
    made.candidates()
    return made.with_preset()


def test_quick_is_few_cheap_strategies_once() -> None:
    quick, _ = chosen("quick")
    cheap = ["feature-extraction", "last-2"]
    assert quick.seed_list == [0]
    assert quick.compared("classification", pairs=False) == ["tf-idf", *cheap]
    assert quick.compared("classification", pairs=True) == ["tf-idf", *cheap]
    assert quick.compared("tagging", pairs=False) == ["most-frequent-tag", *cheap]
    assert not quick.race
    assert not quick.searches
    assert chosen("quick", folds=5)[0].seed_list == [0]


def test_standard_is_the_default() -> None:
    standard, without = Settings().with_preset()
    assert (standard.preset, standard.race, standard.searches, without) == (
        "standard",
        False,
        False,
        "",
    )
    assert standard.seed_list == [0, 1, 2]


def test_best_searches_and_races_over_more_seeds() -> None:
    best, without = chosen("best")
    assert (best.search_trials, best.race, len(best.seed_list), without) == (20, True, 5, "")
    of_folds, _ = chosen("best", folds=5)
    assert (of_folds.search_trials, of_folds.race, len(of_folds.seed_list)) == (20, True, 3)
    of_folds.check()


def test_what_a_person_sets_holds_against_the_preset() -> None:
    best, _ = chosen("best", seeds=[7, 3], race=False, search_trials=2, strategies=["last-2"])
    assert (best.seed_list, best.race, best.search_trials) == ([7, 3], False, 2)
    assert best.compared("classification", pairs=False) == ["last-2"]
    timed, _ = chosen("best", search_seconds=30.0)
    assert (timed.search_trials, timed.search_seconds) == (None, 30.0)
    quick, _ = chosen("quick", seeds=4, race=True)
    assert (len(quick.seed_list), quick.race) == (4, True)


def test_what_contradicts_a_preset_leaves_a_part_of_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, _ = chosen("best", seeds=1)
    assert not alone.race
    held, without = chosen("best", evaluate_on="dev")
    assert not held.searches
    assert held.race
    assert "evaluate_on='dev' holds out no rows" in without
    ray, without = chosen("best", executor="ray")
    assert not ray.searches
    assert "`search_storage`" in without
    for settings in (alone, held, ray):
        settings.check()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not chosen("best")[0].searches


def test_a_part_of_the_race_and_a_storage_of_the_search_go_with_best() -> None:
    best, _ = chosen("best", race_fraction=0.5, search_storage="sqlite:///x.db")
    assert best.race
    assert best.searches


def test_best_without_optuna_says_that_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("totune.runs.settings.find_spec", lambda _: None)
    best, without = chosen("best")
    assert without == "A search needs Optuna: pip install 'totune[search]'."
    assert not best.searches
    assert best.race


def test_an_unknown_preset_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as raised:
        chosen("quik")
    assert raised.value.faults == [
        "preset='quik' is not a preset. Did you mean 'quick'? Known: best, quick, standard."
    ]


def test_train_has_no_presets() -> None:
    with pytest.raises(ConfigError, match="it takes no preset"):
        totune.train("nowhere.csv", preset="best")


@pytest.mark.usefixtures("cache")
def test_what_the_preset_chose_is_said_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "report", lambda _: None)
    monkeypatch.setattr("totune.runs.settings.find_spec", lambda _: None)
    data, out = write_reviews(tmp_path / "reviews.csv", 60), tmp_path / "study"
    settings = {"strategies": ["majority", "tf-idf"], "folds": 1}
    told = Recorder()
    totune.compare(data, out=out, preset="quick", progress=told, **settings)
    assert "Preset quick: 1 seed (`seeds`)." in told.said
    told = Recorder()
    totune.compare(data, out=out, preset="best", seeds=2, progress=told, **settings)
    assert "Preset best: a race (`race`)." in told.said
    assert [line for line in told.warned if "Optuna" in line] == [
        "The preset's search is left out: A search needs Optuna: pip install 'totune[search]'."
    ]
    recorded = json.loads((out / "study.json").read_text())["settings"]
    assert (recorded["preset"], recorded["race"], recorded["search_trials"]) == ("best", True, None)
