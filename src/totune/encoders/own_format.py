"""Encoders without a class in transformers as folders: `config.json` and `model.safetensors`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from totune.errors import ModelError

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write_encoder(folder: Path, facts: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Writes an encoder.

    Args:
        folder: is there.
        facts: the configuration, `model_type` among it.
        weights: by the names they are saved under.
    """
    (folder / CONFIG).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / WEIGHTS)


def read_weights(file: Path, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """The weights of a file.

    Args:
        file: of safetensors.
        shapes: of every tensor that the encoder has, by name.

    Raises:
        ModelError: if the file is missing or damaged, or holds other tensors.
    """
    if not file.is_file():
        raise ModelError(
            f"The folder {file.parent} has a {CONFIG} but no weights ({WEIGHTS}). A configuration "
            "alone is enough for plans, not for training."
        )
    try:
        found = load_file(file)
    except SafetensorError as error:
        raise ModelError(
            f"The weights {file} cannot be read: {error}. The file may be cut short; copy it again."
        ) from None
    for name in sorted(found.keys() ^ shapes.keys()):
        fault = "lack" if name in shapes else "hold more than the encoder's tensors:"
        raise ModelError(f"The weights {file} {fault} {name}: they are not of {CONFIG}'s network.")
    for name, shape in shapes.items():
        if found[name].shape != shape:
            raise ModelError(
                f"The weights {file} have {name} in the shape {tuple(found[name].shape)}, "
                f"{CONFIG} says {tuple(shape)}: they do not belong together."
            )
    return found


def fingerprint_of(facts: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """A hash (32 hexadecimal digits) of a configuration and of weights as they are now."""
    hasher = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
    for name, tensor in sorted(weights.items()):
        hasher.update(f"\n{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        hasher.update(raw.numpy().data)
    return hasher.hexdigest()[:32]
