"""`totune list`."""

import json

import pytest
from typer.testing import CliRunner

from totune.cli.app import app
from totune.cli.catalogue import PLUGINS
from totune.errors import ConfigError


def listed(*arguments: str) -> str:
    return CliRunner().invoke(app, ["list", *arguments], catch_exceptions=False).stdout


def test_everything_is_listed_by_kind():
    data = json.loads(listed("--json"))
    assert list(data) == [*PLUGINS, "encoders", "recipes"]
    assert "last-k" in [entry["name"] for entry in data["strategies"]]


def test_one_kind_alone_with_its_options():
    data = json.loads(listed("heads", "--json"))
    assert list(data) == ["heads"]
    (linear,) = [entry for entry in data["heads"] if entry["name"] == "linear"]
    assert "dropout" in [option["name"] for option in linear["options"]]


def test_encoders_are_the_aliases_and_the_types():
    names = [entry["name"] for entry in json.loads(listed("encoders", "--json"))["encoders"]]
    assert names[0] == "minilm"
    assert {"bert", "modernbert"} <= set(names)


def test_a_person_gets_a_table():
    out = listed("strategies")
    assert "fine-tuning" in out
    assert "linear" not in out


def test_an_unknown_kind_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"called 'head'\. Did you mean 'heads'"):
        listed("head")


def test_heads_say_what_data_they_are_for():
    suits = {head["name"]: head["suits"] for head in json.loads(listed("heads", "--json"))["heads"]}
    assert suits["crf"] == ["tagging"]
    assert suits["esim"] == suits["siamese"] == ["pairs"]
    assert suits["linear"] == ["texts", "pairs", "tagging"]
    assert "for" in listed("heads").splitlines()[0].split()
    assert "for" not in listed("strategies").splitlines()[0].split()
