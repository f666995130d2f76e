"""What every benchmark shares: real encoders and data, results as JSON with their circumstances."""

import json
import os
import statistics
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from totune import machine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SHARED = Path(os.environ.get("TOTUNE_SHARED", ROOT.parent / "shared"))


def commit() -> str:
    """The commit that is measured, with a mark if the tree differs from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def save(name: str, figures: dict[str, Any]) -> Path:
    """Writes `benchmarks/results/NAME.json`: the figures, and what they were measured on."""
    circumstances = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "threads": torch.get_num_threads(),
        "machine": asdict(machine.describe()),
        "versions": machine.versions(),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**figures, **circumstances}, indent=2) + "\n", encoding="utf-8")
    return path


def ratio(larger: list[float], smaller: list[float]) -> float:
    """How many times the one is of the other, by medians."""
    return statistics.median(larger) / statistics.median(smaller)
