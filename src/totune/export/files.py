"""The files of a model's folder: their names, writing them, and refusing damaged ones."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

import totune
from totune.data.examples import Examples
from totune.data.seen import SeenTexts
from totune.errors import ConfigError, ModelError
from totune.tasks.base import Task, task_from_json

DESCRIPTION = "totune.json"
HEAD = "head.safetensors"
ADAPTER_CONFIG = "adapter_config.json"  # PEFT's names
ADAPTER_WEIGHTS = "adapter_model.safetensors"
SEEN = "train_texts.npy"
ENCODER = "encoder"  # the folder of an encoder that goes along with its adapters
_WHOLE = ("config.json", "model.safetensors")

# What reading a folder with a file cut short, swapped or edited by hand can raise.
_DAMAGE = (ValueError, TypeError, KeyError, SafetensorError, RuntimeError, OSError, ConfigError)


def start_folder(folder: Path) -> None:
    """Makes the folder, or takes an older model out of it, whose files would be read with ours."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / DESCRIPTION).is_file():
        for name in (DESCRIPTION, HEAD, ADAPTER_CONFIG, ADAPTER_WEIGHTS, SEEN, *_WHOLE):
            (folder / name).unlink(missing_ok=True)


def describe(folder: Path, task: Task, facts: Mapping[str, Any]) -> None:
    """Writes `totune.json`, which stands for a whole folder and so is written last."""
    write_json({"totune": totune.__version__, "task": task.to_json(), **facts}, folder, DESCRIPTION)


def read_description(folder: Path) -> tuple[Task, dict[str, Any]]:
    """What `describe` wrote.

    Raises:
        ModelError: if the folder is no model's.
    """
    if not (folder / DESCRIPTION).is_file():
        raise ModelError(
            f"{folder} holds no model of totune (there is no {DESCRIPTION} in it). Name the folder "
            "that 'totune train --out' made, or the 'best' folder of a study."
        )
    with refusing_damage(folder):
        about = read_json(folder, DESCRIPTION)
        return task_from_json(about["task"]), about


def write_json(facts: Mapping[str, Any], folder: Path, name: str) -> None:
    """Writes a JSON object."""
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    (folder / name).write_text(text + "\n", encoding="utf-8")


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object; raises ValueError, which names the file, if it is none."""
    try:
        facts = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{name} is damaged ({error})") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{name} is damaged (it holds no JSON object)")
    return facts


def write_weights(weights: Mapping[str, Tensor], folder: Path, name: str) -> None:
    """Writes tensors from any device; none may share memory with another."""
    save_file({n: w.detach().contiguous().cpu() for n, w in weights.items()}, folder / name)


def read_weights(folder: Path, name: str) -> dict[str, Tensor]:
    """Tensors on the processor; raises ValueError, which names the file, if it is damaged."""
    if not (folder / name).is_file():
        raise ValueError(f"{name} is missing")
    try:
        return load_file(folder / name)
    except SafetensorError as error:
        raise ValueError(f"{name} is damaged ({error})") from None


def write_seen(train: Examples, folder: Path) -> None:
    """Writes hashes of the texts that a model was trained on, beside it."""
    np.save(folder / SEEN, SeenTexts.of(train).hashes)


def read_seen(folder: Path) -> SeenTexts | None:
    """What `write_seen` wrote; None where it is not there. Raises ValueError if it is damaged."""
    if not (folder / SEEN).is_file():
        return None
    try:
        hashes = np.load(folder / SEEN, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{SEEN} is damaged ({error})") from None
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise ValueError(f"{SEEN} is damaged (it holds no list of hashes)")
    return SeenTexts(hashes)


@contextmanager
def refusing_damage(folder: Path, *also: type[Exception]) -> Iterator[None]:
    """Turns what damaged files raise, and what is named beside, into one `ModelError`."""
    kinds: tuple[type[Exception], ...] = (*_DAMAGE, *also)
    try:
        yield
    except kinds as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error}"
        raise ModelError(f"{folder} cannot be read as a model: {reason}") from None
