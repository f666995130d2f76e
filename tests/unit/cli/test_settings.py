"""The options of commands that train are the settings of a study, under the same names."""

import dataclasses
import inspect
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from totune.cli.app import app
from totune.cli.settings import COMMON_OPTIONS, STUDY_OPTIONS, read_settings, takes
from totune.errors import ConfigError
from totune.registry import build
from totune.runs.settings import Settings

MEMBER_OPTIONS = {"learning_rate", "num_train_epochs", "warmup_ratio", "weight_decay"}
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
