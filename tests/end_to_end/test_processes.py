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

pytestmark = pytest.mark.slow

TORCHRUN = ("torch.distributed.run", "--nproc-per-node", "2")
SETTINGS = ("--precision", "fp32", "--set", "head.dropout=0", "--learning-rate", "1e-3", "--json")


def launch(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`totune ARGUMENTS` in two processes."""
    command = [sys.executable, "-m", *TORCHRUN, "-m", "totune", *map(str, arguments)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


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


def test_two_processes_come_to_the_numbers_of_one(
    totune: Run, data: Path, still_encoder: Path, tmp_path: Path
) -> None:
    """The last batch of an epoch, of one row, leaves the second process without a row."""
    one, two = tmp_path / "one", tmp_path / "two"
    chosen = ("--strategies", "tf-idf,feature-extraction,last-2,fine-tuning", "--seeds", 2)
    where = (data / "reviews.csv", "--model", still_encoder, *chosen, *SETTINGS)
    where += ("--num-train-epochs", 2)
    size = "--per-device-train-batch-size"
    alone = totune("compare", *where, "--out", one, size, 6)
    assert alone.code == 0, alone.err
    ended = launch("compare", *where, "--out", two, size, 3)
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 1
    assert len(json.loads(lines[0])["runs"]) == 8
    assert ended.stderr.count("run 1/8: tf-idf, seed 0") == 1
    expected, found = records(one), records(two)
    assert sorted(found) == sorted(expected)
    for fingerprint, record in found.items():
        other = expected[fingerprint]
        assert record["test"] == pytest.approx(other["test"], abs=1e-5)
        for epoch, same in zip(record["epochs"], other["epochs"], strict=True):
            assert epoch["train"]["loss"] == pytest.approx(same["train"]["loss"], abs=1e-5)
            assert epoch["dev"]["loss"] == pytest.approx(same["dev"]["loss"], abs=1e-5)
    assert not list(two.glob("**/*.tmp"))
    assert json.loads((two / "study.json").read_text())["machine"]["processes"] == 2
    again = launch("compare", *where, "--out", two, size, 3)
    assert again.returncode == 0, again.stderr
    assert "run 1/8" not in again.stderr


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
