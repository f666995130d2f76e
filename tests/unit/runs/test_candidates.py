"""Candidates of one strategy go through search, race, advice and report under their labels."""

from pathlib import Path

import pytest
from tests.tiny_data import save_encoder, write_pairs

import totune
from totune.study.study import Study

CANDIDATES = [
    {
        "label": "heavy on frozen",
        "strategy": "feature-extraction",
        "head": "cross-attention",
        "options": {"pair_encoding": "separate", "num_train_epochs": 1},
    },
    {
        "label": "light",
        "strategy": "feature-extraction",
        "options": {"solver": "gradient", "num_train_epochs": 1},
    },
]
LABELS = ["heavy on frozen", "light"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder: Path = tmp_path_factory.mktemp("candidates")
    return totune.compare(
        write_pairs(folder / "pairs.csv", 60),
        model=str(save_encoder(folder / "encoder")),
        out=folder / "study",
        text="first",
        pair="second",
        strategies=CANDIDATES,
        seeds=2,
        search_trials=1,
        race=True,
        options={"heavy on frozen.weight_decay": 0.0},
    )


def test_each_runs_with_its_own_head(study: Study) -> None:
    heads = {record.strategy: record.config["head"]["name"] for record in study.records}
    assert heads == {"heavy on frozen": "cross-attention", "light": "linear"}
    heavy = next(record for record in study.records if record.strategy == LABELS[0])
    assert heavy.config["strategy"]["options"]["weight_decay"] == 0.0


def test_search_race_advice_and_report_know_them_by_their_labels(study: Study) -> None:
    assert [search.strategy for search in study.searches] == LABELS
    assert study.info.strategies == LABELS
    assert study.race is not None
    assert {study.advice.best, *(found.strategy for found in study.advice.comparisons)} == {*LABELS}
    report = (study.folder / "report.md").read_text(encoding="utf-8")
    assert all(label in report for label in LABELS)
