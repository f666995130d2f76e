"""Killed and interrupted studies: the same command goes on, to the same numbers."""

import re
import signal
import time
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Run, Start
from tests.end_to_end.studies import results

# Epochs of many small steps, so that a signal arrives in the middle of one.
EPOCHS = 3
SETTINGS = ("--precision", "fp32", "--per-device-train-batch-size", "4", "--learning-rate", "1e-3")


def compare(data: Path, out: Path, strategies: str) -> tuple[object, ...]:
    """A command of one seed."""
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    chosen = ("--strategies", strategies, "--seeds", 1, "--num-train-epochs", EPOCHS)
    return ("compare", *where, *chosen, *SETTINGS)


def models(study: Path) -> dict[str, bytes]:
    """The weights of the recommended model."""
    return {path.name: path.read_bytes() for path in (study / "best").glob("*.safetensors")}


@pytest.fixture(scope="module")
def undisturbed_study(totune: Run, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that nothing disturbed."""
    study = tmp_path_factory.mktemp("whole") / "study"
    ended = totune(*compare(data, study, "fine-tuning,last-2"))
    assert ended.code == 0, ended.err
    return study


def resumed_after(messages: str) -> int:
    """The epoch that a command went on after."""
    found = re.search(r"continuing after epoch (\d+)", messages)
    assert found is not None, messages
    return int(found[1])


def test_a_killed_study_ends_with_the_same_numbers(
    start: Start, totune: Run, data: Path, undisturbed_study: Path, tmp_path: Path
) -> None:
    """Killed in an epoch where everything trains, then in one over the cached lower blocks."""
    study = tmp_path / "study"
    command = compare(data, study, "fine-tuning,last-2")

    def is_training(finished: int) -> bool:
        records = list(study.glob("runs/*/record.json"))
        checkpoints = study.glob("runs/*/checkpoint.pt")
        # That of a run whose record is just written goes away.
        return len(records) == finished and any(
            not (path.parent / "record.json").exists() for path in checkpoints
        )

    said = []
    for finished in (0, 1):
        running = start(*command)
        running.wait_for(lambda finished=finished: is_training(finished))
        time.sleep(0.02)
        running.send(signal.SIGKILL)
        ended = running.end()
        assert ended.code == -signal.SIGKILL
        assert is_training(finished)
        said.append(ended.err)
    last = totune(*command)
    assert last.code == 0, last.err
    assert 1 <= resumed_after(said[1]) < EPOCHS
    assert 1 <= resumed_after(last.err) < EPOCHS
    assert "last-2, seed 0" in last.err
    assert "fine-tuning, seed 0" not in last.err
    assert results(study) == results(undisturbed_study)
    assert models(study) == models(undisturbed_study)
    assert not list(study.glob("runs/*/checkpoint.pt"))


def test_an_interrupted_study_keeps_what_finished(
    start: Start, totune: Run, data: Path, undisturbed_study: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    command = compare(data, study, "tf-idf,fine-tuning")
    running = start(*command)
    running.wait_for(lambda: list(study.glob("runs/*/checkpoint.pt")))
    running.send(signal.SIGINT)
    ended = running.end()
    assert ended.code == 130
    assert ended.err.splitlines()[-1].startswith("Interrupted. What had finished is kept")
    assert "Traceback" not in ended.err
    assert list(results(study)) == [("tf-idf", 0)]
    assert len(list(study.glob("runs/*/checkpoint.pt"))) == 1
    again = totune(*command)
    assert again.code == 0, again.err
    assert "tf-idf, seed 0" not in again.err
    assert 1 <= resumed_after(again.err) < EPOCHS
    assert results(study)["fine-tuning", 0] == results(undisturbed_study)["fine-tuning", 0]
