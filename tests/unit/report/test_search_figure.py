from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.sample_search import DEFAULTS, RANGES, sampled, search, trial

from totune.report.search_figure import (
    option_name,
    option_panels,
    option_value,
    score_span,
    shown_options,
    trial_rows,
)
from totune.search.records import SearchRecord

RATE = {"learning_rate": {"kind": "floats", "low": 1e-5, "high": 1e-3, "log": True}}


def tried(name: str, range_: dict[str, Any], values: list[Any]) -> SearchRecord:
    """A search of one option, trials better and better."""
    trials = [trial(n, 0.5 + n / 10, options={name: v}) for n, v in enumerate(values)]
    return search(trials, ranges={name: range_})


def places(record: SearchRecord) -> list[float | None]:
    """Where trials stand on the first option's axis, in their order."""
    (panel, *_) = option_panels(record)
    return [panel["places"].get(trial.number + 1) for trial in record.trials]


def best_of(record: SearchRecord) -> list[tuple[int, float | None]]:
    return [(row["trial"], row["best"]) for row in trial_rows(record)]


def test_the_best_so_far_rises_only_with_complete_trials():
    record = search(
        [
            trial(0, 0.80),
            trial(1, None),
            trial(2, 0.79),
            trial(3, 0.85, state="pruned"),
            trial(4, 0.82),
            trial(5, 0.81),
        ]
    )
    assert best_of(record) == [(1, 80.0), (3, 80.0), (4, 80.0), (5, 82.0), (6, 82.0)]
    rows = trial_rows(record)
    assert [row["trial"] for row in rows if row["won"]] == [5]
    assert [row["trial"] for row in rows if row["pruned"]] == [4]
    assert [row["score"] for row in rows] == [80.0, 79.0, 85.0, 82.0, 81.0]


def test_an_error_falls():
    trials = [trial(0, 2.0), trial(1, 3.0), trial(2, 0.5), trial(3, 40.0)]
    record = search(trials, metric="mse", best=2)
    assert best_of(record) == [(1, 2.0), (2, 2.0), (3, 0.5), (4, 0.5)]
    assert [row["won"] for row in trial_rows(record)] == [False, False, True, False]
    low, high = score_span(record)
    assert low < 0.5
    assert 3.0 < high < 40.0


def test_one_bad_trial_does_not_stretch_the_scale_but_bad_defaults_do():
    scores = [0.84, 0.86, 0.85, 0.855, 0.845, 0.2]
    low, high = score_span(search([trial(n, score) for n, score in enumerate(scores)]))
    assert 80 < low < 84
    assert 86 < high < 87
    turned, _ = score_span(search([trial(n, score) for n, score in enumerate(scores[::-1])]))
    assert turned < 20


@pytest.mark.parametrize(("count", "metric"), [(1, "accuracy"), (5, "accuracy"), (3, "mse")])
def test_equal_scores_have_a_scale_too(count: int, metric: str):
    record = search([trial(n, 0.85) for n in range(count)], metric=metric)
    score = 85.0 if metric == "accuracy" else 0.85
    low, high = score_span(record)
    assert low < score < high
    assert {row["best"] for row in trial_rows(record)} == {score}


def test_where_all_failed_there_is_nothing_to_draw():
    assert trial_rows(search([trial(0, None), trial(1, None)])) == []


def test_where_the_defaults_failed_the_best_starts_later():
    assert best_of(search([trial(0, None), trial(1, 0.8)])) == [(2, 80.0)]


def test_a_log_range_has_a_log_axis():
    record = tried("learning_rate", RATE["learning_rate"], [1e-5, 1e-4, 1e-3])
    assert places(record) == pytest.approx([0, 0.5, 1])
    (panel,) = option_panels(record)
    assert panel["name"] == "learning rate"
    assert panel["marks"] == [(0.0, "1e-05"), (1.0, "0.001")]


def test_a_linear_range_and_whole_numbers_have_an_even_axis():
    floats = {"kind": "floats", "low": 0.0, "high": 0.4, "log": False}
    assert places(tried("dropout", floats, [0.0, 0.1, 0.4])) == pytest.approx([0, 0.25, 1])
    ints = {"kind": "ints", "low": 2, "high": 6, "log": False}
    assert places(tried("num_train_epochs", ints, [2, 3, 6])) == pytest.approx([0, 0.25, 1])


def test_choices_stand_side_by_side_with_their_names():
    record = tried("pooling", {"kind": "choices", "values": ["cls", "mean", True]}, ["mean", "cls"])
    assert places(record) == [0.5, 0.0]
    assert option_panels(record)[0]["marks"] == [(0.0, "cls"), (0.5, "mean"), (1.0, "yes")]


def test_defaults_outside_the_range_are_on_the_axis():
    low = tried("learning_rate", RATE["learning_rate"], [1e-6, 1e-3])
    assert places(low) == pytest.approx([0, 1])
    other = tried("schedule", {"kind": "choices", "values": ["linear", "constant"]}, [None])
    assert places(other) == [1.0]


def test_a_value_without_a_place_leaves_a_gap():
    assert places(tried("learning_rate", RATE["learning_rate"], [0.0, 1e-4])) == [
        None,
        pytest.approx(0.5),
    ]
    missing = tried("learning_rate", RATE["learning_rate"], [1e-4])
    without = replace(missing, trials=[*missing.trials, trial(1, 0.4, options={})])
    assert None in places(without)


def test_a_range_of_one_value_stands_in_the_middle():
    range_ = {"kind": "ints", "low": 3, "high": 3, "log": False}
    record = tried("num_train_epochs", range_, [3])
    assert places(record) == [0.5]
    assert option_panels(record)[0]["marks"] == [(0.5, "3")]


def test_of_many_options_the_eight_most_important_are_shown():
    names = [f"option_{number}" for number in range(11)]
    range_ = {"kind": "floats", "low": 0.0, "high": 1.0, "log": False}
    record = search(
        [trial(n, 0.8 + n / 100, options=dict.fromkeys(names, 0.5)) for n in range(4)],
        ranges=dict.fromkeys(names, range_),
        importance={name: number / 55 for number, name in enumerate(names)},
    )
    expected = [f"option_{number}" for number in range(10, 2, -1)]
    assert shown_options(record) == expected
    panels = option_panels(record)
    assert [panel["name"] for panel in panels] == [name.replace("_", " ") for name in expected]
    assert panels[0]["importance"] == pytest.approx(1000 / 55)
    assert shown_options(replace(record, importance={})) == names[:8]


def test_importance_is_missing_where_it_cannot_be_known():
    (one,) = option_panels(search([trial(0, 0.8)], ranges=RATE, importance={"learning_rate": 1.0}))
    assert one["importance"] is None
    assert {panel["importance"] for panel in option_panels(search([trial(0, 0.8)]))} == {None}
    assert option_panels(sampled())[0]["importance"] == pytest.approx(71)


def test_failed_trials_have_no_row_and_pruned_ones_are_marked():
    rows = trial_rows(sampled())
    assert len(rows) == 19  # one failed
    assert sum(row["pruned"] for row in rows) == 5
    assert sum(row["won"] for row in rows) == 1


def test_options_are_told_in_plain_words():
    assert [option_name(name) for name in RANGES] == [
        "learning rate",
        "layer decay",
        "weight decay",
        "epochs",
        "schedule",
        "head dropout",
    ]
    assert option_name("head.num_train_epochs") == "head epochs"
    values = [option_value(value) for value in (*DEFAULTS.values(), True, None, 2.1345e-5, 0.0)]
    assert values == ["0.0001", "1", "0.01", "3", "linear", "0.1", "yes", "none", "2.13e-05", "0"]
