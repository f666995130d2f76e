"""Baselines on disk: facts as JSON, arrays as safetensors; never a pickle.

Shared by the members of this folder; itself no member.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from totune.baselines.base import Baseline
from totune.errors import ModelError
from totune.registry import option_names

FACTS = "baseline.json"
ARRAYS = "baseline.safetensors"
FORMAT = 1

Arrays = dict[str, NDArray[Any]]


def write(folder: Path, baseline: Baseline, facts: dict[str, Any], arrays: Arrays) -> None:
    """Writes a trained baseline: its name, its options, `facts` and `arrays`."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, **_identity(baseline), **facts}
    (folder / FACTS).write_text(json.dumps(content), encoding="utf-8")
    # safetensors writes an array's memory as it lies, whatever the order of its axes
    rows_first = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(rows_first, str(folder / ARRAYS))


def read(folder: Path, baseline: Baseline) -> tuple[dict[str, Any], Arrays]:
    """The facts and arrays that `write` wrote.

    Raises:
        ModelError: if a file is missing or damaged, or holds another baseline or other options.
    """
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        arrays = load_file(str(folder / ARRAYS))
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no readable baseline: {error}.") from None
    wanted = {"format": FORMAT, **_identity(baseline)}
    found = {name: facts.get(name) for name in wanted} if isinstance(facts, dict) else facts
    if found != wanted:
        raise ModelError(f"{folder / FACTS} is of {found}, not of {wanted}.")
    return facts, arrays


def _identity(baseline: Baseline) -> dict[str, Any]:
    options = {name: getattr(baseline, name) for name in option_names(type(baseline))}
    return {"baseline": baseline.name, "options": options}
