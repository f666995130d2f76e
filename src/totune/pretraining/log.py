"""What a training has come to, and its log."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from totune.pretraining.files import telling
from totune.pretraining.objective import Drawn

LOG = "log.jsonl"


@dataclass
class Curve:
    """What a training has come to.

    Attributes:
        step: optimizer steps done.
        seconds: they took, evaluations included.
        step_seconds: without evaluations, checkpoints and the measuring before the first step.
        words: read, told apart by white space.
        tokens: read.
        operations: floating-point ones of matrix products.
        turned: the step at which whole rows began, None before.
        evaluations: what each found, and when.
    """

    step: int = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    words: float = 0.0
    tokens: int = 0
    operations: float = 0.0
    turned: int | None = None
    evaluations: list[dict[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Log:
    """A file with a JSON object per line, in the order of steps.

    Args:
        path: the file.
        step: lines of later steps are taken out: they will be written again.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        kept = [line for line in lines if _step_of(line) <= step] if step else []
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, facts: Mapping[str, Any]) -> None:
        problem = f"The log {self._path} cannot be written"
        with (
            telling(problem, "make room; the same command goes on from the last checkpoint"),
            self._path.open("a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(facts) + "\n")


def _step_of(line: str) -> float:
    """The step of a line; a line that was cut short is of no step."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


class Window:
    """What the steps since the last line of the log have come to.

    Attributes:
        sums: by name, on the device of this process.
        targets: predictions, by the name of the loss.
        tokens: that were read.
        seconds: they took.
    """

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.targets: dict[str, int] = {}
        self.tokens, self.seconds = 0, 0.0

    def add(self, sums: dict[str, torch.Tensor], drawn: Drawn) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
        for name, asked in drawn.targets.items():
            self.targets[name] = self.targets.get(name, 0) + asked
        self.tokens += drawn.tokens

    def to_state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def of_state(cls, state: dict[str, Any], device: torch.device) -> "Window":
        window = cls()
        vars(window).update(state)
        window.sums = {name: value.to(device) for name, value in window.sums.items()}
        return window
