"""What a search leaves: read as it was written, and which searches a study's runs follow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.report.sample_search import sampled, search, trial
from tests.unit.report.sample_study import run_of

from totune.errors import ConfigError
from totune.runs.records import RunRecord
from totune.search.records import applied, read_searches, record_path, write_search


def run_with(head_dropout: float = 0.1, **options: object) -> RunRecord:
    """A run of fine-tuning with the defaults of the sample searches and these options."""
    own = {**trial(0, 0.8).options, "warmup_ratio": 0.1, **options}
    dropout = own.pop("head.dropout")
    assert dropout == 0.1
    config = {"strategy": {"options": own}, "head": {"options": {"dropout": head_dropout}}}
    return replace(run_of("fine-tuning", 0), config=config)


def test_trials_worth_naming_are_found():
    record = search([trial(0, 0.8), trial(1, None), trial(2, 0.9), trial(3, 0.7, state="pruned")])
    assert [one.number for one in record.scored] == [0, 2, 3]
    assert [one.number for one in record.failed] == [1]
    assert record.winner is record.trials[2]
    assert record.defaults is record.trials[0]


def test_where_all_failed_there_is_no_winner():
    record = search([trial(0, None), trial(1, None)], best=0)
    assert record.scored == []
    assert record.winner is None
    assert record.defaults is None


def test_a_score_that_is_no_number_is_none():
    assert search([trial(0, float("nan"))]).scored == []


def test_a_repeated_trial_takes_no_time():
    record = search([trial(0, 0.8), trial(1, 0.8, same_as=0), trial(2, None, seconds=2.5)])
    assert record.seconds == pytest.approx(32.5)


def test_searches_whose_winners_ran_are_kept():
    record = search([trial(0, 0.8), trial(1, 0.9)])
    runs = [run_with(learning_rate=1.25e-4)]
    assert applied([record], ["fine-tuning"], runs) == [record]


@pytest.mark.parametrize(
    "changes", [{"learning_rate": 1e-4}, {"learning_rate": 1.25e-4, "head_dropout": 0.3}]
)
def test_searches_of_other_settings_are_left_out(changes: dict[str, float]):
    record = search([trial(0, 0.8), trial(1, 0.9)])
    assert applied([record], ["fine-tuning"], [run_with(**changes)]) == []


def test_searches_of_strategies_that_are_not_compared_are_left_out():
    record = search([trial(0, 0.8)])
    assert applied([record], ["last-2"], []) == []


def test_searches_are_kept_until_their_strategy_runs_and_where_none_could_win():
    record, hopeless = search([trial(0, 0.8)]), search([trial(0, None)])
    other = replace(run_with(), strategy="last-2", config={})
    assert applied([record], ["fine-tuning"], [other]) == [record]
    assert applied([hopeless], ["fine-tuning"], [run_with()]) == [hopeless]


def test_searches_come_back_as_they_were_written(tmp_path: Path):
    first, second = sampled(), search([trial(0, None)], strategy="a/b: c")
    for record in (first, second):
        write_search(tmp_path, record)
    assert sorted(read_searches(tmp_path), key=lambda r: r.strategy) == [second, first]
    write_search(tmp_path, search([trial(0, 0.8)]))
    assert len(read_searches(tmp_path)) == 2


def test_a_folder_without_searches_has_none(tmp_path: Path):
    assert read_searches(tmp_path) == []


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"strategy": "last-2", "trials": []})])
def test_a_file_of_another_shape_is_one_clear_message(tmp_path: Path, text: str):
    path = record_path(tmp_path, "fine-tuning")
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fine-tuning\.json cannot be read as a search") as found:
        read_searches(tmp_path)
    assert "Remove it, or search again." in str(found.value)
