"""`totune cache`."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from totune.cli.app import app
from totune.errors import ConfigError
from totune.features.folder import Folder

DAY = 86_400


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path))
    return tmp_path


def store(root: Path, name: str, days_ago: float) -> str:
    key = name * 64
    folder = Folder(root, 10**9)
    head = {"key": key, "encoder": "bert", "description": f"films {name}", "created": "then"}
    with folder.writing(key, head, 80_000, ()) as writer:
        assert writer is not None
        writer.put(0, np.arange(10_000, dtype=np.int64))
    used = time.time() - days_ago * DAY
    os.utime(folder.path(key), (used, used))
    return key


def output(*arguments: str) -> str:
    return CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False).stdout


def names(text: str, field: str) -> list[str]:
    return [entry["description"] for entry in json.loads(text)[field]]


def test_entries_are_listed_the_least_recently_used_first(root: Path):
    store(root, "a", days_ago=1)
    store(root, "b", days_ago=40)
    listed = output("ls", "--json")
    assert names(listed, "entries") == ["films b", "films a"]
    assert json.loads(listed)["bytes"] >= 160_000
    assert json.loads(listed)["root"] == str(root)


def test_a_person_sees_entries_and_the_budget(root: Path):
    store(root, "a", days_ago=1)
    out = output("ls")
    assert "films a" in out
    assert "1 entry, " in out
    assert str(root) in out


def test_an_empty_cache_is_no_fault(root: Path):
    assert output("ls").startswith("0 entries, 0 B ")


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ([], ["films a"]),
        (["--older-than", "0.5"], []),
        (["--older-than", "50"], ["films b", "films a"]),
        (["--max-size", "0"], []),
        (["--max-size", "1GB"], ["films b", "films a"]),
        (["--max-size", "100kB"], ["films a"]),
    ],
)
def test_prune_removes_what_it_is_told(root: Path, arguments: list[str], left: list[str]):
    store(root, "a", days_ago=1)
    store(root, "b", days_ago=40)
    removed = names(output("prune", *arguments, "--json"), "removed")
    assert names(output("ls", "--json"), "entries") == left
    assert len(removed) == 2 - len(left)


def test_prune_tells_what_it_freed(root: Path):
    store(root, "a", days_ago=1)
    out = output("prune", "--max-size", "0")
    assert "films a" in out
    assert "1 entry removed" in out


def test_a_size_that_is_none_is_refused_and_removes_nothing(root: Path):
    store(root, "a", days_ago=1)
    with pytest.raises(ConfigError, match="'3x' is not a size"):
        output("prune", "--max-size", "3x")
    assert names(output("ls", "--json"), "entries") == ["films a"]
