"""What is declared agrees with itself, and `import totune` is light."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import totune

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_the_offline_extra_and_file_agree():
    assert PROJECT["optional-dependencies"]["offline"] == requirements("offline.txt")


def test_every_dependency_is_pinned_without_a_build_tag():
    pins = dict(pin.split("==") for pin in requirements("constraints.txt"))
    declared = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert {name_of(one) for one in declared} - set(pins) == set()
    assert [pin for pin in pins.values() if "+" in pin] == []
    assert pins["torch"] == "2.13.0"


def imported_packages() -> Iterator[str]:
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_every_import_is_a_declared_dependency():
    outside = set(imported_packages()) - sys.stdlib_module_names - {"totune"}
    providers = packages_distributions()
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k != "dev"}
    wanted = [*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)]
    declared = {name_of(one) for one in wanted}
    undeclared = [
        package
        for package in sorted(outside)
        if declared.isdisjoint(name_of(one) for one in providers.get(package, [package]))
    ]
    assert undeclared == []


def test_importing_totune_loads_nothing_heavy():
    heavy = {"torch", "transformers", "sklearn", "numpy", "pydantic", "typer"}
    code = f"import sys, totune; print(sorted({heavy} & set(sys.modules)))"
    seen = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() == "[]"


def test_an_unknown_attribute_is_named():
    with pytest.raises(AttributeError, match="no attribute 'comparee'"):
        _ = totune.comparee


def test_the_public_names_are_listed():
    calls = {"compare", "extract_features", "load", "merge", "train"}
    classes = {"Callback", "Predictor", "Study", "Strategy", "Head", "Task", "Baseline", "Phase"}
    assert calls | classes | {"__version__"} <= set(dir(totune))
    assert dir(totune) == sorted(totune.__all__)
    assert all(hasattr(totune, name) for name in totune.__all__)
