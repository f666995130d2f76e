"""How far a training has come, and its log."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from totune.pretraining.files import disk_faults
from totune.pretraining.objective import StepBatch

LOG = "log.jsonl"


@dataclass
class TrainingState:
    """How far a training has come.

    Attributes:
        step: optimizer steps done.
        seconds: wall time, evaluations included.
        step_seconds: wall time without evaluations, checkpoints and the measurements before the
            first step.
        words: white-space separated words read.
        tokens: tokens read.
        operations: floating-point operations of matrix products.
        turned: the step at which rows of full length began; None before.
        evaluations: metrics of each evaluation, with its step.
    """

    step: int = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    words: float = 0.0
    tokens: int = 0
    operations: float = 0.0
    turned: int | None = None
    evaluations: list[dict[str, float]] = field(default_factory=list)


class RunningSums:
    """Sums over the steps since the last line of the log.

    Attributes:
        sums: of losses by name, on the device of this process.
        targets: number of predictions, by the name of the loss.
        tokens: tokens read.
        seconds: wall time of the steps.
    """

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.targets: dict[str, int] = {}
        self.tokens, self.seconds = 0, 0.0

    def add(self, sums: dict[str, torch.Tensor], batch: StepBatch) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
        for name, count in batch.targets.items():
            self.targets[name] = self.targets.get(name, 0) + count
        self.tokens += batch.tokens

    def load(self, state: dict[str, Any], device: torch.device) -> None:
        """Restores what `vars` gave."""
        vars(self).update(state)
        self.sums = {name: value.to(device) for name, value in self.sums.items()}


class TrainingLog:
    """A file with a JSON object per line, in the order of steps.

    Args:
        path: the file.
        step: the last step done; lines of later steps are removed, as they will be written again.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        kept = [line for line in lines if _step_of(line) <= step] if step else []
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, facts: Mapping[str, Any]) -> None:
        problem = f"The log {self._path} cannot be written"
        remedy = "make room; the same call continues from the last checkpoint"
        with disk_faults(problem, remedy), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


def _step_of(line: str) -> float:
    """The step of a line; infinity for a line that was cut short."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
