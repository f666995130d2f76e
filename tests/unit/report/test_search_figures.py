from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.sample_search import DEFAULTS, RANGES, sampled, search, trial

from totune.report.search_figures import (
    history_figure,
    importance_figure,
    option_name,
    option_value,
    options_figure,
    shown_options,
)
from totune.search.records import SearchRecord

RATE = {"learning_rate": {"kind": "floats", "low": 1e-5, "high": 1e-3, "log": True}}


def tried(name: str, range_: dict[str, Any], values: list[Any]) -> SearchRecord:
    """A search of one option, trials better and better."""
    trials = [trial(n, 0.5 + n / 10, options={name: v}) for n, v in enumerate(values)]
    return search(trials, ranges={name: range_})


def places(record: SearchRecord, axis: int = 1) -> list[float | None]:
    """Where trials stand on an axis, worst trial first and the winner last."""
    figure = options_figure(record)
    assert figure is not None
    return [line.places[axis] for line in figure.lines]


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
    figure = history_figure(record)
    assert figure is not None
    assert figure.best == ((1, 80.0), (5, 82.0))
    assert figure.defaults == 80.0
    assert figure.winner == (5, 82.0)
    assert figure.trials == 6
    assert [point.at for point in figure.points] == [1, 3, 4, 5, 6]
    assert figure.points[2].state == "pruned"


def test_an_error_falls():
    trials = [trial(0, 2.0), trial(1, 3.0), trial(2, 0.5), trial(3, 40.0)]
    record = search(trials, metric="mse", best=2)
    figure = history_figure(record)
    assert figure is not None
    assert not figure.rises
    assert figure.best == ((1, 2.0), (3, 0.5))
    assert figure.winner == (3, 0.5)
    low, high = figure.limits
    assert low < 0.5
    assert 3.0 < high < 40.0
    shades = options_figure(record)
    assert shades is not None
    assert [line.won for line in shades.lines] == [False, False, False, True]
    assert shades.lines[-1].shade == 1.0
    assert shades.lines[0].shade == 0.0


def test_one_bad_trial_does_not_stretch_the_scale_but_bad_defaults_do():
    scores = [0.84, 0.86, 0.85, 0.855, 0.845, 0.2]
    figure = history_figure(search([trial(n, score) for n, score in enumerate(scores)]))
    assert figure is not None
    assert 80 < figure.limits[0] < 84
    assert 86 < figure.limits[1] < 87
    turned = history_figure(search([trial(n, score) for n, score in enumerate(scores[::-1])]))
    assert turned is not None
    assert turned.limits[0] < 20


@pytest.mark.parametrize(("count", "metric"), [(1, "accuracy"), (5, "accuracy"), (3, "mse")])
def test_equal_scores_have_a_scale_too(count: int, metric: str):
    record = search([trial(n, 0.85) for n in range(count)], metric=metric)
    figure, options = history_figure(record), options_figure(record)
    assert figure is not None
    assert options is not None
    score = 85.0 if metric == "accuracy" else 0.85
    assert figure.limits[0] < score < figure.limits[1]
    assert figure.best == ((1, score),)
    assert {line.places[0] for line in options.lines} == {0.5}
    assert options.axes[0].marks == ((0.5, "85.0" if metric == "accuracy" else "0.85"),)


def test_where_all_failed_there_is_nothing_to_draw():
    record = search([trial(0, None), trial(1, None)])
    assert history_figure(record) is None
    assert options_figure(record) is None


def test_where_the_defaults_failed_they_have_no_line():
    figure = history_figure(search([trial(0, None), trial(1, 0.8)]))
    assert figure is not None
    assert figure.defaults is None
    assert figure.best == ((2, 80.0),)


def test_a_log_range_has_a_log_axis():
    record = tried("learning_rate", RATE["learning_rate"], [1e-5, 1e-4, 1e-3])
    assert places(record) == pytest.approx([0, 0.5, 1])
    figure = options_figure(record)
    assert figure is not None
    assert figure.axes[1].name == "learning rate"
    assert figure.axes[1].marks == ((0.0, "1e-05"), (1.0, "0.001"))


def test_a_linear_range_and_whole_numbers_have_an_even_axis():
    floats = {"kind": "floats", "low": 0.0, "high": 0.4, "log": False}
    assert places(tried("dropout", floats, [0.0, 0.1, 0.4])) == pytest.approx([0, 0.25, 1])
    ints = {"kind": "ints", "low": 2, "high": 6, "log": False}
    assert places(tried("num_train_epochs", ints, [2, 3, 6])) == pytest.approx([0, 0.25, 1])


def test_choices_stand_side_by_side_with_their_names():
    record = tried("pooling", {"kind": "choices", "values": ["cls", "mean", True]}, ["mean", "cls"])
    assert places(record) == [0.5, 0.0]
    figure = options_figure(record)
    assert figure is not None
    assert figure.axes[1].marks == ((0.0, "cls"), (0.5, "mean"), (1.0, "yes"))


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
    figure = options_figure(record)
    assert figure is not None
    assert figure.axes[1].marks == ((0.5, "3"),)


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
    bars = importance_figure(record).bars
    assert [name for name, _ in bars] == [name.replace("_", " ") for name in expected]
    assert bars[0][1] == pytest.approx(1000 / 55)
    figure = options_figure(record)
    assert figure is not None
    assert len(figure.axes) == 9
    assert shown_options(replace(record, importance={})) == names[:8]


def test_importance_says_why_it_is_missing():
    assert importance_figure(search([trial(0, 0.8)])).reason == "Too few trials to tell."
    one = search([trial(0, 0.8)], ranges=RATE, importance={"learning_rate": 1.0})
    assert importance_figure(one).bars == ()
    assert importance_figure(one).reason == "One option was searched."
    assert importance_figure(sampled()).reason == ""


def test_the_winner_is_drawn_last_and_pruned_trials_are_marked():
    figure = options_figure(sampled())
    assert figure is not None
    assert [line.won for line in figure.lines].index(True) == len(figure.lines) - 1
    assert sum(line.pruned for line in figure.lines) == 5
    assert len(figure.lines) == 19  # one failed


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
