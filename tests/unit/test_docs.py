"""`docs/build.py`: the reference covers every command and member, and links lead somewhere."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("TERMINAL_WIDTH", "_TYPER_FORCE_DISABLE_TERMINAL", "NO_COLOR"):
        monkeypatch.setenv(name, "1")  # so that what the script sets is undone
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_member_has_a_section(builder: ModuleType):
    headings = re.findall(r"^### (.+)$", builder.reference(), flags=re.MULTILINE)
    assert {"totune compare", "totune cache prune", "last-k", "linear", "bert"} <= set(headings)
    assert "Settings of totune.extract_features" in headings
    assert len(headings) == len(set(headings))


def test_the_reference_says_the_same_twice(builder: ModuleType):
    assert builder.reference() == builder.reference()


def test_no_page_has_a_dead_link(builder: ModuleType):
    assert builder.dead_links(ROOT) == []


def test_a_dead_link_is_found(builder: ModuleType, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[b](b.md) [c](../README.md) [d](https://d.org) [e](#e)")
    (tmp_path / "README.md").write_text("[a](docs/a.md#part)")
    assert builder.dead_links(tmp_path) == ["docs/a.md: b.md"]
