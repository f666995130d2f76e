"""One run over two processes: the numbers of one process, written once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.commands import ROOT
from tests.end_to_end.conftest import Run
from tests.tiny_data import save_encoder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TORCHRUN = ("torch.distributed.run", "--nproc-per-node", "2")
SETTINGS = ("--precision", "fp32", "--set", "head.dropout=0", "--learning-rate", "1e-3", "--json")


def launch(
    *arguments: object, program: str = "totune", **environment: str
) -> subprocess.CompletedProcess[str]:
    """`totune ARGUMENTS` in two processes."""
    command = [sys.executable, "-m", *TORCHRUN, "-m", program, *map(str, arguments)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def launch_watched(
    log: Path, *arguments: object, **environment: str
) -> tuple[Any, list[list[str]]]:
    """The same, and what the processes did: (action, rank, of what) each."""
    program = "tests.end_to_end.watched_process"
    ended = launch(*arguments, program=program, WATCHED=str(log), **environment)
    assert ended.returncode == 0, ended.stderr
    return ended, [line.split(",") for line in log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def still_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder without dropout, which two processes draw differently than one."""
    return save_encoder(tmp_path_factory.mktemp("still") / "encoder", dropout=0.0)


def records(folder: Path) -> dict[str, Any]:
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in folder.glob("**/runs/*/record.json")
    ]
    return {record["fingerprint"]: record for record in found}


def assert_same_numbers(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for fingerprint, record in found.items():
        other = expected[fingerprint]
        assert record["test"] == pytest.approx(other["test"], abs=1e-5)
        for epoch, same in zip(record["epochs"], other["epochs"], strict=True):
            assert epoch["cached"] == same["cached"]
            assert epoch["train"] == pytest.approx(same["train"], abs=1e-5)
            assert epoch["dev"] == pytest.approx(same["dev"], abs=1e-5)


def entries(cache: Path) -> list[str]:
    """The views that lie in a cache."""
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return sorted(path.name for path in files if path.stat().st_size > 0)


def test_two_processes_come_to_the_numbers_of_one(
    totune: Run, data: Path, still_encoder: Path, tmp_path: Path
) -> None:
    """The last batch of an epoch, of one row, leaves the second process without a row."""
    one, two = tmp_path / "one", tmp_path / "two"
    caches = tmp_path / "cache one", tmp_path / "cache two"
    chosen = ("--strategies", "tf-idf,feature-extraction,last-2,fine-tuning", "--seeds", 1)
    where = (data / "reviews.csv", "--model", still_encoder, *chosen, *SETTINGS)
    where += ("--num-train-epochs", 2)
    size = "--per-device-train-batch-size"
    alone = totune("compare", *where, "--out", one, size, 6, "--cache-dir", caches[0])
    assert alone.code == 0, alone.err
    where = (*where, "--out", two, size, 3, "--cache-dir", caches[1])
    ended, done = launch_watched(tmp_path / "log", "compare", *where)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 1
    assert len(json.loads(lines[0])["runs"]) == 4
    assert ended.stderr.count("run 1/4: tf-idf, seed 0") == 1
    found = records(two)
    assert_same_numbers(found, records(one))
    assert {epoch["cached"] for record in found.values() for epoch in record["epochs"]} == {0, 1}
    assert entries(caches[1]) == entries(caches[0])
    filled = [what for action, _, what in done if action == "fill"]
    # Of three splits, the top pooled and the layer below the last two: whichever process came first
    # computed it, and the other read it.
    assert len(filled) == len(set(filled)) == len(entries(caches[1])) == 6
    saved = [(rank, what) for action, rank, what in done if action == "record"]
    assert sorted(saved) == [("0", fingerprint) for fingerprint in sorted(found)]
    assert not list(two.glob("**/*.tmp"))
    assert json.loads((two / "study.json").read_text())["machine"]["processes"] == 2
    again = launch("compare", *where)
    assert again.returncode == 0, again.stderr
    assert "run 1/4" not in again.stderr


def test_a_process_with_less_memory_decides_for_both(
    totune: Run, data: Path, still_encoder: Path, tmp_path: Path
) -> None:
    """Five rows each, in parts of at most two, average to the gradients of all ten."""
    one, two = tmp_path / "one", tmp_path / "two"
    chosen = ("--strategies", "fine-tuning,feature-extraction", "--seeds", 1)
    where = (data / "reviews.csv", "--model", still_encoder, *chosen, *SETTINGS)
    where += ("--num-train-epochs", 1, "--per-device-train-batch-size")
    alone = totune("compare", *where, 10, "--out", one)
    assert alone.code == 0, alone.err
    log = tmp_path / "log"
    ended, _ = launch_watched(log, "compare", *where, 5, "--out", two, CRAMPED="1")
    assert_same_numbers(records(two), records(one))
    assert ended.stderr.count("does not fit into memory") == 2  # once a run
    assert ended.stderr.count("is computed in 4 parts") == 2


def test_a_fault_ends_both_processes(data: Path, still_encoder: Path, tmp_path: Path) -> None:
    where = (data / "reviews.csv", "--model", still_encoder, "--out", tmp_path / "study")
    wild = ("--strategies", "fine-tuning", "--learning-rate", "1e30")
    ended = launch("compare", *where, *wild, "--seeds", 1)
    assert ended.returncode == 1
    assert "No run finished. The first one's message: the loss on train" in ended.stderr
    assert [record["status"] for record in records(tmp_path).values()] == ["failed"]


def test_a_command_of_two_processes_trains_one_model(
    totune: Run, data: Path, still_encoder: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    ended = launch(
        "train",
        data / "scores.csv",
        "--model",
        still_encoder,
        "--out",
        model,
        *SETTINGS,
    )
    assert ended.returncode == 0, ended.stderr
    metrics = json.loads(ended.stdout.splitlines()[-1])["metrics"]
    assert len(records(model)) == 1
    measured = totune("evaluate", model, data / "scores.csv", "--json")
    assert measured.code == 0, measured.err
    assert set(measured.json["metrics"]) == set(metrics["test"])
