"""What is read never runs: no call of the package loads a pickle or remote code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import totune

SRC = Path(totune.__file__).parent
# What a study's own processes send each other; never a file that somebody hands over.
OWN_PROCESSES = {
    "runs/executors/transfer.py",
    "runs/executors/processes.py",
    "runs/executors/ray_worker.py",
    "extraction/on_ray.py",
}
PICKLES = {"pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load", "dill.load"}
UNSAFE = {"eval", "exec", "yaml.load", "yaml.unsafe_load", "os.system", "shelve.open"}


def calls(file: Path) -> Iterator[tuple[str, dict[str, ast.expr], int]]:
    """Every call of a file: the dotted name, its keywords, the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            named = {word.arg: word.value for word in node.keywords if word.arg}
            yield ast.unparse(node.func), named, node.lineno


def faults(file: Path, own: bool = False) -> list[str]:
    """The calls of a file that could run what they read."""
    found = []
    for name, named, line in calls(file):
        values = {key: ast.unparse(value) for key, value in named.items()}
        wrong = name in UNSAFE
        if not own:
            wrong |= name in PICKLES
            wrong |= name == "torch.load" and values.get("weights_only") != "True"
        wrong |= name == "np.load" and values.get("allow_pickle") != "False"
        wrong |= values.get("trust_remote_code", "False") != "False"
        wrong |= name.endswith(".from_pretrained") and "trust_remote_code" not in values
        wrong |= values.get("shell") == "True"
        if wrong:
            found.append(f"{file.name}:{line}: {name}")
    return found


def test_no_call_could_run_what_it_reads() -> None:
    files = sorted(SRC.rglob("*.py"))
    assert len(files) > 200
    own = [file.relative_to(SRC).as_posix() in OWN_PROCESSES for file in files]
    assert [fault for pair in zip(files, own, strict=True) for fault in faults(*pair)] == []


def test_the_exceptions_are_needed() -> None:
    for name in OWN_PROCESSES:
        assert faults(SRC / name), f"{name} loads no pickle any more"


@pytest.mark.parametrize(
    "code",
    [
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "np.load(path)",
        "pickle.load(file)",
        "AutoModel.from_pretrained(path)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
        "yaml.load(text)",
    ],
)
def test_such_calls_are_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "a.py").write_text(code)
    assert faults(tmp_path / "a.py")
