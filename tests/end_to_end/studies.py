"""What a study's folder holds, to be compared to the bit; and jobs that end their worker."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from totune.runs.context import Context
from totune.runs.executors.base import Job
from totune.runs.store import Store

TIMES = ("costs", "finished_at", "epochs", "sha256")


def results(study: Path) -> dict[tuple[str, int], Any]:
    """Everything a study's runs came to, by strategy and seed, but for what a clock measured."""
    found: dict[tuple[str, int], Any] = {}
    for path in study.glob("runs/*/record.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        facts = {name: value for name, value in record.items() if name not in TIMES}
        epochs = [
            {name: value for name, value in epoch.items() if name != "seconds"}
            for epoch in record["epochs"]
        ]
        with np.load(path.parent / "predictions.npz") as predictions:
            arrays = {name: predictions[name].tobytes() for name in predictions.files}
        weights = [file.read_bytes() for file in sorted(path.parent.glob("weights/*"))]
        found[record["strategy"], record["seed"]] = (facts, epochs, arrays, weights)
    return found


@dataclass(frozen=True)
class Deadly(Job):
    """Ends its worker: by a signal, or by an exception that is no run's own."""

    fault: str

    def run(self, context: Context, store: Store) -> str:
        if self.fault == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "exception":
            raise KeyError("it broke")
        return f"{self.title} in a worker of {torch.get_num_threads()} thread"

    def fail(self, error: str, context: Context, store: Store) -> str:
        return error


@dataclass(frozen=True)
class Variable(Job):
    """Returns an environment variable."""

    name: str

    def run(self, context: Context, store: Store) -> str | None:
        return os.environ.get(self.name)
