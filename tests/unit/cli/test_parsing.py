"""Values as a person types them."""

import pytest

from totune.cli.parsing import (
    parse_assignments,
    parse_duration,
    parse_layers,
    parse_names,
    parse_search,
    parse_seeds,
)
from totune.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("30min", 1800), ("1.5h", 5400), ("1h30m", 5400)],
)
def test_durations(text: str, seconds: float):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "3q", "30m later", "-5m", "1h-30m"])
def test_what_is_no_duration(text: str):
    with pytest.raises(ConfigError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        *[("20", {"search_trials": 20}), (" 1 ", {"search_trials": 1})],
        *[("10m", {"search_seconds": 600}), ("90s", {"search_seconds": 90})],
    ],
)
def test_the_budget_of_a_search_is_trials_or_a_time(text: str, budget: dict[str, float]):
    assert parse_search(text) == budget


@pytest.mark.parametrize("text", ["0", "00", "abc", "", "1.5x", "-3"])
def test_what_is_no_budget_of_a_search(text: str):
    with pytest.raises(ConfigError, match="write a number of trials like 20, or a time"):
        parse_search(text)


@pytest.mark.parametrize(
    ("text", "seeds"), [("5", 5), ("3,7,11", [3, 7, 11]), ("3,", [3]), ("1, 2", [1, 2])]
)
def test_seeds_are_a_number_or_a_list(text: str, seeds: int | list[int]):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "-1", "1,,2", "1.5"])
def test_what_are_no_seeds(text: str):
    with pytest.raises(ConfigError, match="neither a number of seeds nor a list"):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("text", "layers"), [("top", "top"), ("all", "all"), ("0,6, 12", [0, 6, 12]), ("3", [3])]
)
def test_layers_are_a_word_or_numbers(text: str, layers: str | list[int]):
    assert parse_layers(text) == layers


@pytest.mark.parametrize("text", ["", "upper", "1,x", "-1"])
def test_what_are_no_layers(text: str):
    with pytest.raises(ConfigError, match="is none of top, all, or numbers such as 0,6,12"):
        parse_layers(text)


def test_names_may_have_spaces_around_the_commas():
    assert parse_names("tf-idf, last-2,") == ["tf-idf", "last-2"]


def test_assignments_are_json_or_text():
    pairs = ["learning_rate=1e-4", "head.layers=2", "pooling=cls", "ngrams=[1, 2]", "x=a=b", "y="]
    assert parse_assignments(pairs) == {
        "learning_rate": 1e-4,
        "head.layers": 2,
        "pooling": "cls",
        "ngrams": [1, 2],
        "x": "a=b",
        "y": "",
    }


def test_every_wrong_assignment_is_reported():
    with pytest.raises(ConfigError) as caught:
        parse_assignments(["pooling", "=3", "k=2"])
    assert len(caught.value.faults) == 2
    assert "--set 'pooling'" in caught.value.faults[0]
