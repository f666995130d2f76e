from dataclasses import replace

import pytest

from totune.advice import Ensemble
from totune.report.comparison import ensemble_table, ensemble_words
from totune.runs.records import StudyInfo

SEEDS = Ensemble(
    "fine-tuning x 5 seeds",
    tuple(f"fine-tuning seed {seed}" for seed in range(5)),
    {"accuracy": 0.871, "f1": 0.9},
    {"accuracy": 0.862, "f1": 0.91},
    {"accuracy": 0.009, "f1": -0.01},
    454_279_720,
    9.75,
)
BEST = replace(SEEDS, name="3 best strategies", members=("lora seed 1", "adapters seed 0"))


def test_scores_stand_above_those_of_the_members_and_the_gain(info: StudyInfo):
    table = ensemble_table(info, [SEEDS, BEST])
    first = table.rows[0].cells
    assert [cell.text for cell in first] == [
        "fine-tuning x 5 seeds",
        "87.1",
        "90.0",
        "454 MB",
        "9.8",
    ]
    assert [cell.detail for cell in first[:3]] == ["", "alone 86.2, +0.9", "alone 91.0, −1.0"]
    assert table.rows[1].cells[0].detail == "lora seed 1, adapters seed 0"
    assert "sums" in table.notes[0]


def test_costs_that_are_not_known_are_dashes(info: StudyInfo):
    blind = replace(SEEDS, storage_bytes=float("inf"), latency_milliseconds=float("nan"))
    table = ensemble_table(info, [blind])
    assert [cell.text for cell in table.rows[0].cells[-2:]] == ["–", "–"]
    assert table.values("Stored per task") == [None]


@pytest.mark.parametrize(
    ("task", "rule"),
    [("classification", "probability"), ("regression", "mean"), ("tagging", "tag that most")],
)
def test_it_is_said_how_they_answer_and_that_none_may_be_chosen_here(
    info: StudyInfo, task: str, rule: str
):
    told = ensemble_words(replace(info, task=task))
    assert rule in told
    assert "no part of the advice" in told
    assert "choosing on test" in told
