"""Reading pairs of language models: `config.json` and `model.safetensors`.

Weights are named `forward.` and `backward.`, and then as in Flair; of any precision.
"""

import json
from pathlib import Path
from typing import Any

import torch

from totune.encoders.flair.encoder import MODEL_TYPE, FlairLmEncoder, name_in_file
from totune.encoders.flair.options import BACKWARD, FORWARD, FlairOptions
from totune.encoders.own_format import CONFIG, WEIGHTS, read_weights
from totune.encoders.words import Vocabulary, WordTokenizer, read_tokenizer
from totune.errors import ModelError


def holds_flair(folder: Path) -> bool:
    """Whether a folder's configuration is of a pair of language models, and of nothing else.

    `model_type` may be missing: published pairs are recognised by their two directions.
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
        own = {name: tensor.shape for name, tensor in encoder.state_dict().items()}
        shapes = {name_in_file(name): shape for name, shape in own.items()}
        found = read_weights(folder / WEIGHTS, shapes)
        encoder.load_state_dict({name: found[name_in_file(name)] for name in own})
    tokenizer = read_tokenizer(folder, vocabulary, encoder.max_length, str(folder))
    return encoder.eval(), tokenizer
