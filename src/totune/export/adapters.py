"""Reading a model whose encoder is elsewhere: load it, know it again, insert, take the weights."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from totune.adapters.restore import insert_again
from totune.encoders.loading import Loaded, load_encoder
from totune.encoders.mixing import Readout
from totune.errors import ModelError
from totune.export.files import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ENCODER,
    HEAD,
    read_json,
    read_weights,
    refusing_damage,
)
from totune.heads.base import HEADS
from totune.machine import Precision
from totune.model import Model
from totune.registry import build
from totune.tasks.base import Task

_REMEDY = "Name a place of that encoder with `model`."
_SHOWN = 8  # digits of a fingerprint


def open_encoder(folder: Path, about: dict[str, Any], reference: str | None) -> Loaded:
    """The encoder that the model in `folder` was trained with.

    Args:
        folder: the model's.
        about: its description.
        reference: where the encoder is; None for where it was.

    Raises:
        ModelError: if there is none, or another.
    """
    was = str(about["model"])
    if reference is not None:
        loaded = load_encoder(reference)
    elif about.get("holds_encoder"):
        loaded = load_encoder(str(folder / ENCODER))
    else:
        loaded = _load_again(folder, was)
    found, wanted = loaded.encoder.fingerprint(), str(about["fingerprint"])
    if found != wanted:
        raise ModelError(
            f"{folder} was trained with the encoder {was} (fingerprint {wanted[:_SHOWN]}), and "
            f"{loaded.reference} is another one (fingerprint {found[:_SHOWN]}): what was trained "
            f"fits no encoder but its own. {_REMEDY}"
        )
    return loaded


def _load_again(folder: Path, was: str) -> Loaded:
    if Path(was).is_absolute() and not Path(was).is_dir():
        raise ModelError(
            f"{folder} holds what was trained, not the encoder it belongs to, whose folder {was} "
            f"is gone. {_REMEDY}"
        )
    try:
        return load_encoder(was)
    except ModelError as error:
        raise ModelError(
            f"{folder} holds what was trained, not the encoder it belongs to: {error} {_REMEDY}"
        ) from None


def open_adapter(
    folder: Path, task: Task, about: dict[str, Any], loaded: Loaded, precision: Precision
) -> Model:
    """The trained model, in eval mode; its modules are put into the encoder of `loaded`.

    Raises:
        ModelError: if a file is missing or damaged.
    """
    with refusing_damage(folder, ModelError):
        config = read_json(folder, ADAPTER_CONFIG)
        weights = read_weights(folder, ADAPTER_WEIGHTS)
        model = assemble(loaded, task, about, precision)
        insert_again(loaded.encoder, config).load_state_dict(weights)
        load_upper(model, read_weights(folder, HEAD))
        return model.eval()


def assemble(loaded: Loaded, task: Task, about: dict[str, Any], precision: Precision) -> Model:
    """The model that a description describes, with an untrained head."""
    head = HEADS.create(about["head"]["name"], about["head"]["options"])
    readout = build(Readout, about["readout"], "readout")
    return Model(loaded.encoder, readout, head, task, precision)


def load_upper(model: Model, weights: dict[str, Tensor]) -> None:
    """Takes over mixing and head, and parameters of the encoder if there are any.

    Raises:
        RuntimeError: if names or shapes are not the model's.
    """
    rest = dict(weights)
    for name, module in (("mixing", model.mixing), ("head", model.head)):
        own = {key: rest.pop(key) for key in weights if key.startswith(f"{name}.")}
        module.load_state_dict({k.removeprefix(f"{name}."): v for k, v in own.items()})
    parameters = model.unique_parameters() if rest else {}
    with torch.no_grad():
        for name, tensor in rest.items():
            if name not in parameters or parameters[name].shape != tensor.shape:
                raise RuntimeError(f"{name} in {HEAD} is no parameter of this model")
            parameters[name].copy_(tensor)
