"""Reading networks: the official files, and ours.

| | shape | weights |
|---|---|---|
| official | `*options.json` | `*weights.hdf5` |
| ours | `config.json` with `"model_type": "elmo"` and the official options | `model.safetensors` |
"""

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from totune.encoders.elmo.characters import CHARACTERS
from totune.encoders.elmo.encoder import MODEL_TYPE, ElmoEncoder
from totune.encoders.elmo.options import ElmoOptions
from totune.encoders.own_format import CONFIG, WEIGHTS, read_weights
from totune.encoders.words import Vocabulary, WordTokenizer, read_tokenizer
from totune.errors import ModelError
from totune.outputs import check_output_folder

OFFICIAL_OPTIONS, OFFICIAL_WEIGHTS = "*options.json", "*weights.hdf5"

Read = Callable[[str, tuple[int, ...]], Tensor]  # name and shape of a dataset -> its content


def holds_elmo(folder: Path) -> bool:
    """Whether a folder holds an ELMo, whole or not, and no other encoder."""
    config = folder / CONFIG
    if not config.is_file():
        return any(folder.glob(OFFICIAL_OPTIONS))
    try:
        facts = json.loads(config.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(facts, dict) and facts.get("model_type") == MODEL_TYPE


def read_options(folder: Path) -> ElmoOptions:
    """The shape of the network in a folder that holds one.

    Raises:
        ModelError: if the file is damaged, or there are several.
    """
    file = folder / CONFIG
    ours = file.is_file()
    if not ours:
        file = _only(folder, OFFICIAL_OPTIONS)
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{file} is not a JSON object: {error}.") from None
    return ElmoOptions.from_json(facts.get("options") if ours else facts, str(file))


def plan_elmo(folder: Path) -> ElmoEncoder:
    """An encoder without memory (meta device), for counting parameters: needs the shape alone.

    Raises:
        ModelError: if the shape is missing or damaged.
    """
    options = read_options(folder)
    with torch.device("meta"):
        return ElmoEncoder(options, Vocabulary())


def load_elmo(folder: Path, random_weights: bool = False) -> tuple[ElmoEncoder, WordTokenizer]:
    """The encoder in a folder that holds one, in float32 and eval mode, and its tokenizer.

    Args:
        folder: of the official files or of ours.
        random_weights: whether any weights are left unread.

    Raises:
        ModelError: if something is missing, damaged, or does not fit the rest; if the weights are
            official ones and h5py is not installed.
    """
    options, vocabulary = read_options(folder), Vocabulary()
    encoder = ElmoEncoder(options, vocabulary)
    if not random_weights:
        _fill(encoder, folder)
    tokenizer = read_tokenizer(folder, vocabulary, encoder.max_length, str(folder))
    return encoder.eval(), tokenizer


def convert_elmo(folder: Path, out: Path) -> ElmoEncoder:
    """Writes the encoder of the official files in a folder, and its tokenizer, as ours.

    Args:
        folder: holds the official files.
        out: new or empty; made if it is not there.

    Raises:
        ModelError: as `load_elmo`, and if the folder holds no official files.
        ConfigError: if `out` holds something.
    """
    if not folder.is_dir() or not any(folder.glob(OFFICIAL_OPTIONS)):
        raise ModelError(
            f"{folder} holds no ELMo in the official format: there is no {OFFICIAL_OPTIONS} in it. "
            "Name the folder with the options and the weights that were published together."
        )
    check_output_folder(out)
    encoder, tokenizer = load_elmo(folder)
    out.mkdir(parents=True, exist_ok=True)
    encoder.save(out)
    tokenizer.save_pretrained(out)
    return encoder


def _fill(encoder: ElmoEncoder, folder: Path) -> None:
    if (folder / CONFIG).is_file():
        shapes = {name: tensor.shape for name, tensor in encoder.state_dict().items()}
        found = read_weights(folder / WEIGHTS, shapes)
    else:
        with _open_hdf5(_only(folder, OFFICIAL_WEIGHTS)) as read:
            found = official_weights(encoder.options, read)
    encoder.load_state_dict(found)


def _only(folder: Path, pattern: str) -> Path:
    """The one file of a folder that is named so."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = f" ({', '.join(file.name for file in found)})" if found else ""
        raise ModelError(
            f"The folder {folder} holds {len(found)} files named {pattern}{names}; an ELMo in the "
            f"official layout is exactly one {OFFICIAL_OPTIONS} and one {OFFICIAL_WEIGHTS}."
        )
    return found[0]


@contextmanager
def _open_hdf5(file: Path) -> Iterator[Read]:
    """Something that reads the file's datasets by name, each of a known shape."""
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError:
        raise ModelError(
            f"{file} is in the HDF5 format, which needs the package h5py: pip install h5py."
        ) from None
    try:
        opened = h5py.File(file, "r")
    except OSError as error:
        raise ModelError(
            f"The weights {file} cannot be read: {error}. The file may be cut short; copy or "
            "download it again."
        ) from None

    def read(name: str, shape: tuple[int, ...]) -> Tensor:
        dataset = opened.get(name)
        if not isinstance(dataset, h5py.Dataset):
            raise ModelError(f"The weights {file} lack {name}, which the options speak of.")
        if dataset.shape != shape:
            raise ModelError(
                f"The weights {file} have {name} in the shape {dataset.shape}, the options say "
                f"{shape}: they do not belong together."
            )
        return torch.from_numpy(np.asarray(dataset[()], dtype=np.float32))

    with opened:
        yield read


def official_weights(options: ElmoOptions, read: Read) -> dict[str, Tensor]:
    """An encoder's weights from official ones; `read` gives a dataset by its name and shape.

    Official matrices multiply from the right.
    """
    features, size = options.features, options.projection_size
    own = {"characters.weight": read("char_embed", (CHARACTERS, options.character_size))}
    for at, (width, count) in enumerate(options.filters):
        kernel = read(f"CNN/W_cnn_{at}", (1, width, options.character_size, count))
        own[f"convolutions.{at}.weight"] = kernel[0].permute(2, 1, 0)  # [count, E, width]
        own[f"convolutions.{at}.bias"] = read(f"CNN/b_cnn_{at}", (count,))
    for at in range(options.highway_layers):
        for ours, theirs in (("gate", "carry"), ("transform", "transform")):
            matrix = read(f"CNN_high_{at}/W_{theirs}", (features, features))
            own[f"highways.{at}.{ours}.weight"] = matrix.T
            own[f"highways.{at}.{ours}.bias"] = read(f"CNN_high_{at}/b_{theirs}", (features,))
    if features != size:
        own["projection.weight"] = read("CNN_proj/W_proj", (features, size)).T
        own["projection.bias"] = read("CNN_proj/b_proj", (size,))
    found = {f"embedder.{name}": tensor for name, tensor in own.items()}
    for layer in range(options.layers):
        ways = [_official_lstm(options, read, way, layer) for way in (0, 1)]
        for name in ways[0]:
            found[f"layers.{layer}.{name}"] = torch.stack([way[name] for way in ways])
    return found


def _official_lstm(options: ElmoOptions, read: Read, way: int, layer: int) -> dict[str, Tensor]:
    """One direction of a layer: of the gates i, j, f, o we want i, f, j, o, and 1 more on f."""
    place = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    size, cells = options.projection_size, options.cell_size
    matrix = _ordered(read(f"{place}/W_0", (2 * size, 4 * cells)).T)
    bias = _ordered(read(f"{place}/B", (4 * cells,)))
    bias[cells : 2 * cells] += 1
    return {
        "input_weight": matrix[:, :size],
        "hidden_weight": matrix[:, size:],
        "bias": bias,
        "projection_weight": read(f"{place}/W_P_0", (cells, size)).T,
    }


def _ordered(gates: Tensor) -> Tensor:
    admit, candidate, forget, emit = gates.chunk(4)
    return torch.cat([admit, forget, candidate, emit])
