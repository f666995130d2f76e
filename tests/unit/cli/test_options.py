"""Options are the declared settings under the same names; values are read as people type them."""

import dataclasses
import inspect
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from totune.cli.app import app
from totune.cli.options import (
    COMMON_OPTIONS,
    STUDY_OPTIONS,
    Command,
    in_flags,
    options_of,
    parse_assignments,
    parse_candidates,
    parse_duration,
    parse_layers,
    parse_names,
    parse_search,
    parse_seeds,
    read_settings,
    takes,
)
from totune.errors import ConfigError, DataError
from totune.extraction.settings import ExtractionSettings
from totune.pretraining.settings import PretrainingSettings
from totune.registry import DeclaredSettings, build
from totune.runs.settings import Settings
from totune.text import parse_size

MEMBER_OPTIONS = {"candidate", "learning_rate", "num_train_epochs", "warmup_ratio", "weight_decay"}
DEFAULTS = {option.name: option.default for option in STUDY_OPTIONS}


def test_every_setting_has_an_option():
    fields = {field.name for field in dataclasses.fields(Settings)}
    gathered = {"options", "search_trials", "search_seconds"}
    assert set(DEFAULTS) - MEMBER_OPTIONS - {"set", "search"} == fields - gathered


def test_the_defaults_are_those_of_the_settings():
    assert build(Settings, read_settings(DEFAULTS), "compare") == Settings()


def test_values_are_read():
    given = {"seeds": "3,7", "budget": "30m", "cache_budget": "2GB", "strategies": "tf-idf,last-2"}
    assert read_settings(given) == {
        "seeds": [3, 7],
        "budget": 1800,
        "cache_budget": 2_000_000_000,
        "strategies": ["tf-idf", "last-2"],
        "options": {},
    }


@pytest.mark.parametrize(
    ("text", "budget"), [("20", {"search_trials": 20}), ("10m", {"search_seconds": 600})]
)
def test_a_search_has_a_budget_of_one_kind_or_the_other(text: str, budget: dict[str, float]):
    assert read_settings({"search": text}) == {**budget, "options": {}}


def test_options_of_strategies_are_gathered_and_set_wins():
    given = {"learning_rate": 1e-3, "weight_decay": 0.0, "set": ["learning_rate=2e-5", "k=3"]}
    assert read_settings(given)["options"] == {"learning_rate": 2e-5, "weight_decay": 0.0, "k": 3}


def test_candidates_have_labels_heads_and_options_of_their_own():
    given = {
        "strategies": "tf-idf",
        "candidate": [
            "esim frozen=feature-extraction,head=esim,pair_encoding=separate,head.hidden_size=8",
            "shared=adapters,sharing=[null,null,0],patience=null",
        ],
    }
    assert read_settings(given)["strategies"] == [
        "tf-idf",
        {
            "strategy": "feature-extraction",
            "label": "esim frozen",
            "head": "esim",
            "options": {"pair_encoding": "separate", "head.hidden_size": 8},
        },
        {
            "strategy": "adapters",
            "label": "shared",
            "options": {"sharing": [None, None, 0], "patience": None},
        },
    ]


def test_what_is_no_candidate_is_told_with_the_form():
    with pytest.raises(ConfigError) as caught:
        parse_candidates(["last-2", "=last-2", "a=last-2 k=1"])
    assert len(caught.value.faults) == 3
    assert "'last-2' is not of the form LABEL=STRATEGY" in caught.value.faults[0]


def test_every_unreadable_value_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        read_settings({"seeds": "x", "budget": "soon", "cache_budget": "big", "set": ["y"]})
    assert len(caught.value.faults) == 4


def test_a_command_receives_the_options_it_takes():
    received: dict[str, Any] = {}

    @takes(COMMON_OPTIONS)
    def command(data: str, **settings: Any) -> None:
        received.update(settings, data=data)

    assert "settings" not in inspect.signature(command).parameters
    program = typer.Typer()
    program.command()(command)
    result = CliRunner().invoke(program, ["x.csv", "--max-length", "9", "--set", "a=1"])
    assert result.exit_code == 0, result.output
    assert (received["data"], received["max_length"], received["set"]) == ("x.csv", 9, ["a=1"])


def test_underscores_as_in_transformers_are_understood(monkeypatch: pytest.MonkeyPatch):
    received: dict[str, Any] = {}

    def keep(data: str, **settings: Any) -> None:
        received.update(settings)
        raise ConfigError("enough")

    monkeypatch.setattr("totune.api.compare", keep)
    CliRunner().invoke(app, ["compare", "x.csv", "--learning_rate", "1e-4", "--max_length=16"])
    assert received["options"] == {"learning_rate": 1e-4}
    assert received["max_length"] == 16


@pytest.mark.parametrize("settings", [ExtractionSettings, PretrainingSettings])
def test_the_options_of_other_settings_have_their_defaults(settings: type[DeclaredSettings]):
    given = {option.name: option.default for option in options_of(settings)}
    assert settings(**read_settings(given, settings)) == settings()


def test_an_option_of_another_name_is_read_into_its_setting():
    assert read_settings({"max_time": "2m"}, PretrainingSettings) == {"max_seconds": 120}


FLAGS = {
    "seeds": "--seeds",
    "race": "--race",
    "max_length": "--max-length",
    "options": "--set",
}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("add `seeds=5`.", "add --seeds 5."),
        ("add `race=True`.", "add --race."),
        ("`max_length` raises it", "--max-length raises it"),
        ("say `seeds='3,7'`", "say --seeds 3,7"),
        ("say `seeds=[3, 7]`", "say --seeds 3,7"),
        ("say `options={'lora.r': 4, 'k': 2}`.", "say --set lora.r=4 --set k=2."),
        ("seeds=[0, 0] is out of range: ...", "--seeds 0,0 is out of range: ..."),
        ("seeds='': ...\nseeds=x is ...", "--seeds '': ...\n--seeds x is ..."),
        ("strategy lora: seeds=-1: Input ...", "strategy lora: --seeds -1: Input ..."),
        ("pooling=cls, not seeds=2", "pooling=cls, not seeds=2"),
        ("`pooling` stays, as does `hf auth login`", "`pooling` stays, as does `hf auth login`"),
    ],
)
def test_settings_in_messages_are_told_as_options(message: str, told: str):
    assert in_flags(message, FLAGS) == told


def failing_program(error: Exception) -> typer.Typer:
    program = typer.Typer()

    @program.command(cls=Command)
    def command(
        data: str, model: Annotated[str, typer.Option("--encoder", "-e")] = "minilm"
    ) -> None:
        raise error

    return program


def test_errors_speak_of_the_options_of_their_command():
    fault = "Name `model`, another `data` or `keep_weights='all'`."
    raised = CliRunner().invoke(failing_program(DataError(fault)), ["x.csv"]).exception
    assert str(raised) == "Name --encoder, another DATA or --keep-weights all."
    raised = CliRunner().invoke(failing_program(ConfigError([fault, "`race`"])), ["x"]).exception
    assert isinstance(raised, ConfigError)
    assert raised.faults[1] == "--race"
    assert str(raised) == "\n".join(raised.faults)


# Values as a person types them


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


@pytest.mark.parametrize("text", ["", "x", "-1", "1,,2", "1.5", "9" * 5000])
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


def test_a_value_that_is_nested_too_deeply_is_no_value():
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_assignments(["x=" + "[" * 100_000])


def test_numbers_beyond_all_use_are_refused():
    for arguments in (["cache", "prune", "--older-than", "inf"],):
        assert CliRunner().invoke(app, arguments).exit_code == 2
    with pytest.raises(ConfigError, match="is not a size"):
        parse_size("9" * 400)
    with pytest.raises(ConfigError, match=r"seeds=1000000000 is out of range.*at most 10,000"):
        Settings(seeds=1_000_000_000).check()


def test_every_wrong_assignment_is_reported():
    with pytest.raises(ConfigError) as caught:
        parse_assignments(["pooling", "=3", "k=2"])
    assert len(caught.value.faults) == 2
    assert "--set 'pooling'" in caught.value.faults[0]


def test_pairs_of_names_and_values_stay_text():
    given = {"where": ["genre=travel", "genre=9"], "label_map": ["Can't Decide=", "=none", "1=yes"]}
    read = read_settings(given)
    assert read["where"] == {"genre": ["travel", "9"]}
    assert read["label_map"] == {"Can't Decide": "", "": "none", "1": "yes"}
    with pytest.raises(ConfigError, match="'genre' is not of the form NAME=VALUE"):
        read_settings({"where": ["genre"]})
