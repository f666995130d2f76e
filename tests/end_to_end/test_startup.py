"""What commands wait for: the modules that they load, each in a Python that starts for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.commands import ROOT
from tests.end_to_end.conftest import Run
from tests.tiny_data import save_encoder

HEAVY = {"accelerate", "datasets", "matplotlib", "optuna", "peft", "sklearn", "torch"}
HEAVY |= {"transformers"}
PROGRAM = f"""
import atexit, sys
from totune.cli import main
atexit.register(lambda: print(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr))
main()
"""


def loaded(*arguments: str | Path) -> set[str]:
    """Those of `HEAVY` that `totune ARGUMENTS` has loaded when it ends."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stderr.splitlines()[-1].split())


@pytest.fixture(scope="module")
def study(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A study of tf-idf alone with an encoder that is nowhere, and what it has loaded."""
    out = tmp_path_factory.mktemp("startup") / "study"
    where = (data / "reviews.csv", "--model", "no/such/encoder", "--out", out)
    more = ("--strategies", "tf-idf", "--seeds", "1", "--folds", "1")
    return out, loaded("compare", *where, *more)


def test_a_list_loads_nothing_heavy() -> None:
    assert loaded("list") == set()


def test_a_study_of_baselines_loads_no_transformers(study: tuple[Path, set[str]]) -> None:
    assert study[1] == {"accelerate", "matplotlib", "sklearn", "torch"}


def test_a_baseline_answers_without_pytorch(study: tuple[Path, set[str]], data: Path) -> None:
    assert loaded("predict", study[0] / "best", data / "reviews.csv") == {"sklearn"}


def test_a_study_of_baselines_names_no_encoder_and_takes_any(
    study: tuple[Path, set[str]], data: Path, totune: Run
) -> None:
    file = study[0] / "study.json"
    assert json.loads(file.read_text(encoding="utf-8"))["model"] == {}
    before = json.loads(file.read_text(encoding="utf-8"))["runs"]
    words = ("compare", data / "reviews.csv", "--out", study[0], "--seeds", "1")
    chosen = ("--strategies", "tf-idf,sentence-embedding", "--model")
    refused = totune(*words, *chosen, "no/such/encoder")
    assert refused.code == 2
    assert "no/such/encoder" in refused.err
    ended = totune(*words, *chosen, data / "encoder")
    assert ended.code == 0, ended.err
    assert "run 1/2" not in ended.err  # tf-idf's is there
    after = json.loads(file.read_text(encoding="utf-8"))
    assert after["model"]["kind"] == "bert"
    assert set(before) < set(after["runs"])
    again = totune(*words, "--strategies", "tf-idf")
    assert again.code == 0, again.err


def test_a_study_that_reads_an_encoder_takes_no_other(
    data: Path, tmp_path: Path, totune: Run
) -> None:
    save_encoder(tmp_path / "other", seed=1)
    words = ("compare", data / "reviews.csv", "--out", tmp_path / "study", "--seeds", "1")
    chosen = ("--strategies", "sentence-embedding", "--model")
    assert totune(*words, *chosen, data / "encoder").code == 0
    refused = totune(*words, *chosen, tmp_path / "other")
    assert refused.code == 2
    assert "another encoder" in refused.err
