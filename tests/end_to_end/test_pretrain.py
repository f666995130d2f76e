"""`totune pretrain`: from text to an encoder that other commands take, and what goes wrong."""

import json
import signal
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Run, Start
from tests.end_to_end.test_processes import launch
from tests.unit.pretraining.conftest import write_corpus

KINDS = ("bert", "elmo")
TINY = ("--preset", "tiny", "--batch-size", 8, "--precision", "fp32")


@pytest.fixture(scope="module")
def longer_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt", 80)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_pretrained_is_an_encoder_for_training(
    totune: Run, data: Path, longer_text: Path, tmp_path: Path, kind: str
) -> None:
    out, model = tmp_path / "encoder", tmp_path / "model"
    ended = totune("pretrain", kind, longer_text, "--out", out, *TINY, "--max-steps", 20, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["steps"] == 20
    assert ended.json["validation"]["perplexity"] > 1
    assert 0 < ended.json["matrix_share"] < 1
    assert "after" in ended.err
    again = totune("pretrain", kind, longer_text, "--out", out, *TINY, "--max-steps", 20)
    assert again.code == 0, again.err
    assert "finished before" in again.err
    assert f"--model {out}" in again.out
    trained = totune(
        *("train", data / "reviews.csv", "--model", out, "--out", model),
        *("--num-train-epochs", 1, "--strategy", "fine-tuning", "--json"),
    )
    assert trained.code == 0, trained.err
    assert 0 <= trained.json["metrics"]["test"]["accuracy"] <= 1


def test_an_interrupted_pretraining_goes_on(
    totune: Run, start: Start, longer_text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "encoder"
    order = (
        "pretrain",
        "elmo",
        longer_text,
        "--out",
        out,
        *TINY,
        "--eval-steps",
        5,
        "--max-steps",
        200,  # enough to be interrupted before the end
    )
    running = start(*order)
    running.wait_for((out / "checkpoint.pt").is_file)
    running.send(signal.SIGINT)
    ended = running.end()
    assert ended.code == 130
    assert "the same command again does only the rest" in ended.err
    again = totune(*order)
    assert again.code == 0, again.err
    assert "continuing after step" in again.err
    steps = [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps[-1] == 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no text"),
        (b"just one line\n", "holds 1 paragraph"),
        (b"one\n\ntwo \xff\n", "line 3 holds byte 0xFF"),
        (b"a short text.\n\nand another.\n", "than the text allows"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_one_message(
    totune: Run, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    ended = totune(
        *("pretrain", "elmo", path, "--out", tmp_path / "out", "--preset", "tiny"),
        *("--vocab-size", 500, "--quiet"),
    )
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_help_teaches(totune: Run, kind: str) -> None:
    ended = totune("pretrain", kind, "--help")
    assert ended.code == 0
    assert ended.out.count(f"totune pretrain {kind}") >= 3
    assert "blank line between" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_come_to_the_numbers_of_one(
    totune: Run, longer_text: Path, tmp_path: Path, kind: str
) -> None:
    order = ("pretrain", kind, longer_text, *TINY, "--max-steps", 12, "--eval-steps", 6, "--json")
    alone = totune(*order, "--out", tmp_path / "one")
    assert alone.code == 0, alone.err
    parts = ("--gradient-accumulation-steps", 2)
    ended = launch(*order, *parts, "--out", tmp_path / "two")
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 1
    found = json.loads(lines[0])
    assert found["processes"] == 2
    wanted = alone.json["validation"]["perplexity"]
    assert found["validation"]["perplexity"] == pytest.approx(wanted, rel=1e-3)
