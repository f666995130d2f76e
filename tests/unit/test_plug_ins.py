"""Members from outside: registered, saved with their place, and missed with a remedy."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_data import save_encoder, write_reviews

import totune
from totune.cli.app import main
from totune.errors import ConfigError, ModelError
from totune.registry import Registry

HEAD = '''
from dataclasses import dataclass
from torch import nn
import totune

class Module(totune.HeadModule):
    def __init__(self, width, outputs):
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, states):
        return self.out(states.vectors[0])

@totune.HEADS.register("outside")
@dataclass(frozen=True)
class Outside(totune.Head):
    """A head from outside."""

    scale: float = 1.0
    wants = ("pooled",)

    def build(self, width, task):
        return Module(width, task.outputs)
'''


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with the module `outside_head`, which nothing has imported."""
    (tmp_path / "outside_head.py").write_text(HEAD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    registries = (totune.HEADS,)
    for one in registries:
        one.names()  # modules register once, so all of the package's own must have
    before = [dict(one._members) for one in registries]
    yield tmp_path
    for one, members in zip(registries, before, strict=True):
        one._members, one._loaded = members, True
    sys.modules.pop("outside_head", None)


def installed(folder: Path, target: str = "outside_head:Outside") -> None:
    """Makes the folder look like one that a package is installed in."""
    info = folder / "outside_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: outside-package\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        f"[totune.heads]\noutside = {target}\n", encoding="utf-8"
    )
    (info / "top_level.txt").write_text("outside_head\n", encoding="utf-8")
    totune.HEADS._loaded = False


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return int(ended.value.code or 0)


def test_a_model_names_the_plug_in_it_needs(
    plug_in: Path, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    data, encoder = write_reviews(plug_in / "reviews.csv", 60), save_encoder(plug_in / "encoder")
    model = plug_in / "model"
    options = ("--model", encoder, "--head", "outside", "--num-train-epochs", "1", "--out", model)
    trained = ("train", data, "--strategy", "feature-extraction", *options)
    assert run("--import", "outside_head", *trained) == 0
    about = json.loads((model / "totune.json").read_text(encoding="utf-8"))
    place = {"folder": "totune.heads", "name": "outside", "module": "outside_head", "package": ""}
    assert about["plug_ins"] == [place]
    assert run("list", "heads", "--import=outside_head") == 0
    assert "A head from outside." in capsys.readouterr().out

    del totune.HEADS._members["outside"]
    del sys.modules["outside_head"]
    with pytest.raises(ModelError, match=r"needs the head 'outside' of the plug-in outside_head"):
        totune.load(model)
    assert "outside_head" not in sys.modules  # a folder runs no code
    assert run("predict", model, data) == 2
    assert "(totune --import outside_head)" in capsys.readouterr().err
    assert run("predict", model, data, "--import", "outside_head") == 0


def test_a_model_can_have_no_other_module_imported(plug_in: Path) -> None:
    (plug_in / "outside_head").mkdir()
    (plug_in / "outside_head" / "base.py").write_text("raise SystemExit", encoding="utf-8")
    needed = {"folder": "outside_head", "name": "outside", "module": "", "package": ""}
    about = {"totune": "1", "kind": "full", "task": {}, "plug_ins": [needed]}
    (plug_in / "totune.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"plug_ins in totune.json names the folder 'outside_head'"
    ):
        totune.load(plug_in)


def test_an_installed_plug_in_is_there_by_name(
    plug_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "outside" not in totune.HEADS.names()
    installed(plug_in)
    assert run("list", "heads") == 0
    assert "Plug-in of outside-package." in capsys.readouterr().out
    assert "outside_head" not in sys.modules
    assert totune.HEADS.create("outside", {"scale": 2}).scale == 2.0  # type: ignore[attr-defined]
    assert [*totune.HEADS.outside()] == ["outside"]


@pytest.mark.parametrize("target", ["outside_hed:Outside", "outside_head:Inside"])
def test_a_plug_in_that_fails_is_named_with_its_package(plug_in: Path, target: str) -> None:
    installed(plug_in, target)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"'outside' of the plug-in outside-package can"):
            totune.HEADS.get("linear")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--import", "no_such_module", "list"), "--import no_such_module cannot be imported: Mod"),
        (("list", "--import"), "--import MODULE cannot be imported"),
    ],
)
def test_a_module_that_fails_to_import_is_one_message(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: " + message)
    assert "Traceback" not in said


def test_a_class_may_be_defined_anew_and_names_are_not_shared() -> None:
    registry: Registry[Any] = Registry("toy", "tests.unit")

    def define() -> type:
        @registry.register("again")
        class Toy:
            pass

        return Toy

    first, second = define(), define()  # as a notebook's cell does
    assert registry._members["again"] is second is not first
    with pytest.raises(ConfigError, match="Two toy members are called 'again'"):
        registry.register("again")(type("Other", (), {}))
