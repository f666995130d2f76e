"""Members register by being there; options are checked; unknown names get the nearest."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from totune.errors import ConfigError
from totune.registry import Registry, build, did_you_mean, option_names

BASE = "from totune.registry import Registry\nTOYS = Registry('toy', 'toybox')\n"
MEMBER = """
from dataclasses import dataclass
from toybox.base import TOYS

@TOYS.register({name!r})
@dataclass(frozen=True)
class Toy:
    {fields}
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    folder = tmp_path / "toybox"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text(BASE)
    (folder / "ball.py").write_text(MEMBER.format(name="ball", fields="size: int = 3"))
    (folder / "last_k.py").write_text(
        MEMBER.format(name="last-k", fields="k: int = 1\n    rate: float = 0.5")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import toybox.base

    yield toybox.base.TOYS
    for name in [name for name in sys.modules if name.partition(".")[0] == "toybox"]:
        del sys.modules[name]


def test_a_file_in_the_folder_is_a_member(toys: Registry):
    assert toys.names() == ["ball", "last-k"]
    assert toys.get("ball").name == "ball"


def test_a_new_file_is_a_new_member(toys: Registry, tmp_path: Path):
    (tmp_path / "toybox/kite.py").write_text(MEMBER.format(name="kite", fields="pass"))
    assert "kite" in toys.names()


def test_options_are_converted_and_set(toys: Registry):
    assert toys.create("ball", {"size": "7"}).size == 7


def test_a_number_in_the_name_is_short_for_k(toys: Registry):
    toy = toys.create("last-2", {"rate": 0.1})
    assert (toy.name, toy.k, toy.rate) == ("last-k", 2, 0.1)


def test_an_unknown_name_gets_the_nearest(toys: Registry):
    with pytest.raises(ConfigError, match=r"no toy called 'bal'. Did you mean 'ball'\? Known"):
        toys.create("bal")


def test_a_number_makes_no_member_of_another_name(toys: Registry):
    with pytest.raises(ConfigError, match="no toy called 'ball-2'"):
        toys.create("ball-2")


def test_one_name_cannot_be_taken_twice():
    registry: Registry = Registry("toy", "toybox")
    registry.register("ball")(type("Ball", (), {}))
    with pytest.raises(ConfigError, match="Two toy members are called 'ball'"):
        registry.register("ball")(type("Other", (), {}))


@dataclass(frozen=True)
class Options:
    learning_rate: float = 1e-3
    layers: int = 1
    seeds: Annotated[int, Field(gt=0)] | tuple[int, ...] = 1


@dataclass(frozen=True)
class NoOptions:
    pass


def test_option_names_are_the_fields():
    assert option_names(Options) == ["learning_rate", "layers", "seeds"]


def test_every_wrong_option_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        build(Options, {"learnin_rate": 1, "layers": "many"}, "head linear")
    unknown, wrong = caught.value.faults
    assert unknown.startswith("head linear has no option 'learnin_rate'. Did you mean 'learning_r")
    assert wrong.startswith("head linear: layers='many': ")


def test_a_value_of_none_of_several_types_is_reported_once():
    with pytest.raises(ConfigError) as caught:
        build(Options, {"seeds": 0}, "analysis cost")
    (fault,) = caught.value.faults
    assert fault.startswith("analysis cost: seeds=0: Input should be greater than 0 or Input")


def test_an_unknown_option_alone_is_a_fault():
    with pytest.raises(ConfigError, match="no option 'depth'"):
        build(Options, {"depth": 2}, "head linear")


def test_a_member_without_options_says_so():
    with pytest.raises(ConfigError, match="strategy plain has no option 'k'; it takes none"):
        build(NoOptions, {"k": 2}, "strategy plain")


def test_the_nearest_name_ignores_case():
    assert did_you_mean("Linear", ["linear", "bcn"]) == "Did you mean 'linear'? Known: bcn, linear."


def test_no_near_name_gives_the_list_alone():
    assert did_you_mean("zzz", ["linear", "bcn"]) == "Known: bcn, linear."
