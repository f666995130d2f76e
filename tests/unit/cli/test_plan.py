"""`totune plan`: from a configuration alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig
from typer.testing import CliRunner

from totune.cli.app import app
from totune.errors import ConfigError


@pytest.fixture
def encoder_config(tmp_path: Path) -> Path:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    BertConfig(vocab_size=50, num_hidden_layers=3, **sizes).save_pretrained(tmp_path)
    return tmp_path


def plan(folder: Path, *arguments: str) -> dict[str, Any]:
    return json.loads(output(folder, *arguments, "--json"))


def output(folder: Path, *arguments: str) -> str:
    arguments = ("plan", *arguments, "--model", str(folder))
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def rates(facts: dict[str, Any]) -> dict[str, float | None]:
    return {part["part"]: part["learning_rate"] for part in facts["phases"][0]["parts"]}


def test_last_k_trains_the_top_and_nothing_below(encoder_config: Path):
    facts = plan(encoder_config, "last-1", "--set", "learning_rate=0.5")
    trained = {part for part, rate in rates(facts).items() if rate is not None}
    assert trained == {"layer.3", "pooler", "head"}
    assert rates(facts)["head"] == 0.5


def test_counts_are_those_of_the_parts(encoder_config: Path):
    facts = plan(encoder_config, "fine-tuning", "--num-labels", "5")
    (phase,) = facts["phases"]
    sizes = {part["part"]: part["parameters"] for part in phase["parts"]}
    assert sizes["head"] == 8 * 5 + 5
    assert phase["trainable"] == facts["parameters"] == sum(sizes.values())


def test_a_person_sees_what_is_frozen(encoder_config: Path):
    out = output(encoder_config, "last-1")
    assert "layer.1" in out
    assert "frozen" in out
    assert "parameters train" in out


def test_a_solved_phase_says_so(encoder_config: Path):
    (phase,) = plan(encoder_config, "feature-extraction", "--set", "layers=top")["phases"]
    assert "5-fold cross-validation" in phase["stop"]
    out = output(encoder_config, "feature-extraction", "--set", "layers=top")
    assert "Phase 1: head. Solved, with an L2 penalty" in out
    assert "LinearDecay" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["last-9"], "k=9 is outside 1..3"),
        (["tf-idf"], "'tf-idf' is a baseline"),
        (["fine-tunning"], "Did you mean 'fine-tuning'"),
        (["fine-tuning", "--set", "layer_deca=1"], "Did you mean 'layer_decay'"),
        (["fine-tuning", "--head", "liner"], "Did you mean 'linear'"),
    ],
)
def test_faults_are_named(encoder_config: Path, arguments: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        plan(encoder_config, *arguments)


def test_data_whose_columns_must_be_named_decides(encoder_config: Path, tmp_path: Path):
    lines = [f"a{number},{number % 7},good text {number},b{number}" for number in range(100)]
    Path(tmp_path / "two.csv").write_text("\n".join(["one,stars,two,three", *lines]))
    named = ("--text", "two", "--label", "stars", "--task", "regression", "--fraction", "0.5")
    facts = plan(encoder_config, "fine-tuning", "--data", str(tmp_path / "two.csv"), *named)
    assert facts["train_rows"] == 36  # of a fold of 50 rows


def test_how_data_is_read_needs_data(encoder_config: Path):
    with pytest.raises(ConfigError, match="--label says how data is read: name it with --data"):
        plan(encoder_config, "fine-tuning", "--label", "stars")
    with pytest.raises(ConfigError, match=r"--fraction 2\.0 is out of range"):
        plan(encoder_config, "fine-tuning", "--fraction", "2")
