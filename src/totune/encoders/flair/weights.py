"""Reading pairs of language models: `config.json` and `model.safetensors`.

Weights are named `forward.` and `backward.`, and then as in Flair; of any precision.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from totune.encoders.flair.encoder import CONFIG, MODEL_TYPE, WEIGHTS, FlairLmEncoder, name_in_file
from totune.encoders.flair.options import BACKWARD, FORWARD, FlairOptions
from totune.encoders.words import Vocabulary, WordTokenizer, read_tokenizer
from totune.errors import ModelError


def holds_flair(folder: Path) -> bool:
    """Whether a folder's configuration is of a pair of language models, and of nothing else.

    That it is need not be said: published pairs are told by a model of each direction.
    """
    try:
        facts: Any = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(facts, dict):
        return False
    unnamed = "model_type" not in facts and {FORWARD, BACKWARD} <= facts.keys()
    return unnamed or facts.get("model_type") == MODEL_TYPE


def read_options(folder: Path) -> FlairOptions:
    """The shape of the networks in a folder that holds some.

    Raises:
        ModelError: if the configuration is missing or damaged.
    """
    file = folder / CONFIG
    if not file.is_file():
        raise ModelError(f"The folder {folder} has no {CONFIG}, so it holds no encoder.")
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{file} is not a JSON object: {error}.") from None
    return FlairOptions.from_json(facts, str(file))


def plan_flair(folder: Path) -> FlairLmEncoder:
    """An encoder without memory (meta device), for counting parameters: needs the shape alone.

    Raises:
        ModelError: if the shape is missing or damaged.
    """
    options = read_options(folder)
    with torch.device("meta"):
        return FlairLmEncoder(options, Vocabulary())


def load_flair(folder: Path, random_weights: bool = False) -> tuple[FlairLmEncoder, WordTokenizer]:
    """The encoder in a folder that holds one, in float32 and eval mode, and its tokenizer.

    Args:
        folder: of Flair's models or of ours.
        random_weights: whether any weights are left unread.

    Raises:
        ModelError: if something is missing, damaged, or does not fit the rest.
    """
    options, vocabulary = read_options(folder), Vocabulary()
    encoder = FlairLmEncoder(options, vocabulary)
    if not random_weights:
        encoder.load_state_dict(_read(folder / WEIGHTS, encoder.state_dict()))
    tokenizer = read_tokenizer(folder, vocabulary, encoder.max_length, str(folder))
    return encoder.eval(), tokenizer


def _read(file: Path, own: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a file by the names and in the shapes of `own`."""
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
    named = {name_in_file(name): tensor for name, tensor in own.items()}
    for name in sorted(found.keys() ^ named.keys()):
        fault = "lack" if name in named else "hold more than the encoder's tensors:"
        raise ModelError(f"The weights {file} {fault} {name}: they are not of {CONFIG}'s network.")
    for name, tensor in named.items():
        if found[name].shape != tensor.shape:
            raise ModelError(
                f"The weights {file} have {name} in the shape {tuple(found[name].shape)}, "
                f"{CONFIG} says {tuple(tensor.shape)}: they do not belong together."
            )
    return {name: found[name_in_file(name)] for name in own}
