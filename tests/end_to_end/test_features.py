"""`totune features` as a person runs it, and killed on its way."""

import signal
from pathlib import Path

import numpy as np
from tests.end_to_end.conftest import Run, Start

from totune.extraction import open_features


def command(data: Path, out: Path, *more: object) -> tuple[object, ...]:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    return ("features", *where, "--rows-per-shard", 5, "--precision", "fp32", *more)


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("shard-*.safetensors")}


def test_a_killed_extraction_ends_with_the_same_bytes(
    start: Start, totune: Run, data: Path, tmp_path: Path
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    ended = totune(*command(data, whole, "--json"))
    assert ended.code == 0, ended.err
    assert (ended.json["rows"], ended.json["shards"]) == (200, 40)
    running = start(*command(data, folder))
    running.wait_for(lambda: len(shards(folder)) >= 3)
    running.send(signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    assert 3 <= len(shards(folder)) < 40
    again = totune(*command(data, folder, "--json"))
    assert again.code == 0, again.err
    assert "rows are there already, in " in again.err
    assert 0 < again.json["computed"]["rows"] < 200
    assert shards(folder) == shards(whole)
    assert sorted(path.suffix for path in folder.iterdir() if path.suffix != ".safetensors") == [
        ".json"
    ]


def test_kept_columns_and_layers(totune: Run, data: Path, tmp_path: Path) -> None:
    more = ("--format", "parquet", "--keep", "label", "--layers", "0,4", "--quiet")
    ended = totune(*command(data, tmp_path / "out", *more))
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert "200 rows in 40 shards; 200 of them computed now" in ended.out
    (first, *_) = open_features(tmp_path / "out")
    assert first.vectors.shape == (5, 2, 32)
    assert np.isfinite(first.vectors).all()
    assert set(first.table().column("label").to_pylist()) == {"praise", "blame"}


def test_a_fault_is_one_message(totune: Run, data: Path, tmp_path: Path) -> None:
    ended = totune(*command(data, tmp_path / "out", "--keep", "label"))
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "error: --keep label: safetensors hold no text; choose --format arrow or --format parquet."
    ]
