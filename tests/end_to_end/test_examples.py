"""The programs and the plug-in under `examples/`, as a person runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, cache: Path) -> dict[str, str]:
    """The environment of a process that finds this totune."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOTUNE_CACHE": str(cache)}


def run(folder: Path, variables: dict[str, str], *arguments: str | Path) -> str:
    ended = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("program", "last"),
    [
        ("compare_a_frame.py", "['good', 'bad']"),
        ("cross_validate.py", "accuracy 1.00"),
        ("own_head.py", "['bad']"),
    ],
)
def test_a_program_runs(program: str, last: str, tmp_path: Path, here: dict[str, str]) -> None:
    assert run(tmp_path, here, EXAMPLES / program).splitlines()[-1] == last


def test_the_examples_are_typed(here: dict[str, str]) -> None:
    files = [*sorted(EXAMPLES.glob("*.py")), EXAMPLES / "plugin/totune_max_mean.py"]
    assert "Success" in run(ROOT, here, "-m", "mypy", "--strict", *files)


def test_the_plug_in_is_installed_and_needed(
    data: Path, tmp_path: Path, here: dict[str, str]
) -> None:
    site = tmp_path / "site"
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
    source = tmp_path / "plugin"
    source.mkdir()
    for path in (EXAMPLES / "plugin").glob("*.*"):
        (source / path.name).write_bytes(path.read_bytes())
    run(tmp_path, here, *pip, "--target", site, source)
    with_it = {**here, "PYTHONPATH": os.pathsep.join([here["PYTHONPATH"], str(site)])}
    totune = ("-m", "totune")
    assert "max-mean" in run(tmp_path, with_it, *totune, "list", "heads")
    chosen = ("--strategy", "feature-extraction", "--head", "max-mean", "--num-train-epochs", "2")
    files = ("--model", data / "encoder", "--out", tmp_path / "model")
    run(tmp_path, with_it, *totune, "train", data / "reviews.csv", *chosen, *files)
    conforms = ("-m", "pytest", "-q", "-p", "no:cacheprovider", source / "test_max_mean.py")
    assert "1 passed" in run(tmp_path, with_it, *conforms)
    use = (*totune, "predict", tmp_path / "model", data / "reviews.csv")
    assert run(tmp_path, with_it, *use).startswith("text,label,prediction,")
    ended = subprocess.run(
        [sys.executable, *map(str, use)], env=here, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "pip install totune-max-mean, or import totune_max_mean" in ended.stderr
