"""Out of a folder that needs its encoder, one that needs nothing."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.loading import Loaded, load_encoder, quiet
from totune.errors import ModelError
from totune.export.adapters import open_adapter, open_encoder
from totune.export.files import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ENCODER,
    HEAD,
    SEEN,
    describe,
    read_description,
    read_json,
    refusing_damage,
    write_adapter_config,
)
from totune.export.saving import save_model
from totune.outputs import check_output_folder
from totune.tasks.base import Task

# What `save_model` and `describe` say themselves, and what a merged encoder is not.
_OF_THE_FOLDER = (
    *("totune", "task", "kind", "readout", "head", "fingerprint", "holds_encoder", "files"),
)


@dataclass(frozen=True)
class Merged:
    """What `merge` wrote.

    Attributes:
        folder: the new model's.
        merged: whether the inserted modules are now part of the encoder's weights; if not, they
            stay modules of their own and the encoder was written along.
        note: one sentence about it: the class of transformers that reads the folder, or why the
            modules cannot be merged.
    """

    folder: Path
    merged: bool
    note: str


def merge(folder: Path, out: Path, model: str | None = None) -> Merged:
    """Writes the model in `folder` as a folder that needs no encoder from elsewhere.

    Args:
        folder: a model with modules inserted into an encoder (adapters, LoRA).
        out: a folder that is new or empty.
        model: where the encoder is, if it is no longer where it was.

    Raises:
        ConfigError: if `out` holds something.
        ModelError: as `load_model`, and if there is nothing to merge.
    """
    check_output_folder(out)
    task, about = read_description(folder)
    _check_kind(folder, about)
    with refusing_damage(folder):
        loaded = open_encoder(folder, about, model)
        trained = open_adapter(folder, task, about, loaded, "fp32")
    insert = trained.encoder.inserted
    assert insert is not None, "just put in"
    reason = _fold(insert)
    if reason:
        _write_along(folder, out, task, about, loaded)
        return Merged(out, False, reason)
    rest = {name: fact for name, fact in about.items() if name not in _OF_THE_FOLDER}
    save_model(out, trained, loaded.tokenizer, task, rest)
    _copy(folder, out, SEEN)
    written = read_description(out)[1]
    kind, reason = written["transformers_class"], written["transformers_note"]
    note = f"transformers reads it as {kind}." if kind else f"only totune reads it: {reason}."
    return Merged(out, True, note)


def _check_kind(folder: Path, about: dict[str, Any]) -> None:
    kind = about.get("kind")
    if kind != "adapter":
        what = "baseline" if kind == "baseline" else "plain model"
        raise ModelError(
            f"{folder} has nothing to merge: it is a {what}. What can be merged are models of "
            "strategies that insert modules, such as lora."
        )


def _fold(insert: AdapterModules) -> str:
    """Merges; returns why that cannot be done, or nothing if it was."""
    try:
        insert.merge()
    except ModelError as error:
        return str(error)
    return ""


def _write_along(folder: Path, out: Path, task: Task, about: dict[str, Any], used: Loaded) -> None:
    """The same model with its encoder in a folder within."""
    out.mkdir(parents=True, exist_ok=True)
    plain = load_encoder(used.reference)  # a new one: the encoder in use holds the modules
    with quiet():
        (out / ENCODER).mkdir()
        plain.encoder.save(out / ENCODER)
        plain.tokenizer.save_pretrained(out / ENCODER)
    write_adapter_config(read_json(folder, ADAPTER_CONFIG), out)
    _copy(folder, out, HEAD, ADAPTER_WEIGHTS, SEEN)
    rest = {name: fact for name, fact in about.items() if name not in ("totune", "task", "files")}
    describe(out, task, rest | {"holds_encoder": True})


def _copy(folder: Path, out: Path, *names: str) -> None:
    for name in names:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
