"""Files are whole whenever they are there."""

import json
import os
from pathlib import Path

import pytest

from totune.io import replacing, write_json, write_text


def test_what_is_written_replaces_what_was_there(tmp_path: Path):
    path = tmp_path / "new" / "facts.json"
    for data in ({"name": "größer"}, [1, 2]):
        write_json(path, data)
        assert json.loads(path.read_text(encoding="utf-8")) == data
    assert path.read_text() == "[\n  1,\n  2\n]\n"
    assert [file.name for file in path.parent.iterdir()] == ["facts.json"]


def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_of_an_unfinished_file_tells_its_process(tmp_path: Path):
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
        assert temporary.name == f"a.txt.{os.getpid()}.tmp"
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
