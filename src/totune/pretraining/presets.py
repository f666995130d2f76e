"""Sizes by name, each with how it is trained unless one says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from totune.encoders.elmo.options import ElmoOptions
from totune.errors import ConfigError
from totune.registry import did_you_mean

Preset = TypeVar("Preset")


@dataclass(frozen=True)
class Training:
    """How a size is trained.

    Attributes:
        vocab_size: word pieces, or words of the softmax.
        max_length: pieces or words of a row, what frames them included.
        batch_size: rows of an optimizer step.
        learning_rate: at its peak.
        short_length: pieces of a row in the first part of the training; None for whole rows only.
    """

    vocab_size: int
    max_length: int
    batch_size: int
    learning_rate: float
    short_length: int | None = None


@dataclass(frozen=True)
class BertPreset:
    """A BERT.

    Attributes:
        about: what it is for.
        parameters: of the encoder, with a vocabulary of the preset's size.
        layers: how many.
        hidden_size: of a state; a head of attention has 64 numbers, or 32 in the smallest.
        heads: of attention.
        training: how it is trained.
    """

    about: str
    parameters: int
    layers: int
    hidden_size: int
    heads: int
    training: Training


@dataclass(frozen=True)
class ElmoPreset:
    """An ELMo, without clips unless wanted.

    Attributes:
        about: what it is for.
        parameters: of the encoder; the softmax, which no task reads, comes on top.
        options: its shape.
        training: how it is trained.
    """

    about: str
    parameters: int
    options: ElmoOptions
    training: Training


def _elmo(projection: int, cells: int, character: int, filters: tuple[int, ...]) -> ElmoOptions:
    """Two layers; convolutions of width 1, 2, ... with so many filters."""
    return ElmoOptions(
        projection_size=projection,
        cell_size=cells,
        layers=2,
        cell_clip=None,
        projection_clip=None,
        residual=True,
        character_size=character,
        filters=tuple(enumerate(filters, 1)),
        highway_layers=1,
    )


BERT_PRESETS: Mapping[str, BertPreset] = {
    "tiny": BertPreset("tests: seconds", 168_320, 2, 64, 2, Training(1_000, 64, 16, 2e-3)),
    "mini": BertPreset(
        "a processor: an hour", 5_289_984, 4, 256, 4, Training(8_192, 128, 16, 1e-3, 32)
    ),
    "small": BertPreset(
        "a GPU: half an hour", 33_675_264, 8, 512, 8, Training(16_384, 128, 256, 7e-4, 32)
    ),
}
ELMO_PRESETS: Mapping[str, ElmoPreset] = {
    "tiny": ElmoPreset(
        "tests: seconds",
        43_224,
        _elmo(16, 64, 8, (8, 8, 16)),
        Training(1_000, 32, 16, 5e-3),
    ),
    "mini": ElmoPreset(
        "a processor: an hour",
        2_550_224,
        _elmo(128, 512, 16, (32, 32, 64, 64, 64)),
        Training(20_000, 64, 32, 2e-3),
    ),
    "small": ElmoPreset(
        "a GPU: half an hour",
        5_363_920,
        _elmo(128, 1024, 16, (32, 32, 64, 128, 256)),
        Training(60_000, 64, 256, 2e-3),
    ),
}
CONTINUED = Training(vocab_size=0, max_length=128, batch_size=32, learning_rate=1e-4)


def find_preset(presets: Mapping[str, Preset], name: str) -> Preset:
    """The preset of a name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in presets:
        raise ConfigError(f"There is no preset {name!r}. {did_you_mean(name, list(presets))}")
    return presets[name]
