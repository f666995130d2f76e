"""How a language model is pretrained, and presets: sizes by name, each with its settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

from totune.encoders.elmo.options import ElmoOptions
from totune.errors import ConfigError
from totune.registry import did_you_mean


@dataclass(frozen=True)
class PretrainingSettings:
    """The settings of a pretraining; None stands for the preset's value.

    Training ends at the first of `max_steps`, `max_words` and `max_seconds` that are given; without
    any, after one pass over the text. The learning rate rises, then falls linearly to 0 at the end.

    Attributes:
        vocab_size: number of word pieces, or of words of the softmax.
        max_length: tokens of a row, special tokens included.
        batch_size: rows of an optimizer step, over all processes.
        gradient_accumulation_steps: parts that a step is computed in, to need less memory.
        short_length: tokens of a row in the first part of the training (bert only); a step then
            reads more rows, with about as many tokens in all.
        short_ratio: share of the training that reads short rows.
        learning_rate: peak learning rate.
        warmup_ratio: share of the training in which the learning rate rises.
        weight_decay: decoupled weight decay of matrices.
        max_grad_norm: norm that gradients are clipped to.
        max_steps: optimizer steps.
        max_words: white-space separated words to read; also limits how much of the corpus is used.
        max_seconds: wall time of training, evaluations included.
        eval_steps: steps between two evaluations; None for a tenth of the training.
        seed: seed of initialisation, order and masks.
        precision: "auto", "bf16" or "fp32".
    """

    vocab_size: int | None = None
    max_length: int | None = None
    batch_size: int | None = None
    gradient_accumulation_steps: int = 1
    short_length: int | None = None
    short_ratio: float = 0.8
    learning_rate: float | None = None
    warmup_ratio: float = 0.06
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    max_steps: int | None = None
    max_words: int | None = None
    max_seconds: float | None = None
    eval_steps: int | None = None
    seed: int = 0
    precision: str = "auto"

    def check(self) -> None:
        """Raises `ConfigError` with every value that is out of range."""
        faults = [
            f"{name}={value!r} must be greater than 0."
            for name, value in asdict(self).items()
            if name in _POSITIVE and value is not None and not value > 0
        ]
        faults += [
            f"{name}={value!r} must be from 0 to below 1."
            for name, value in (
                ("warmup_ratio", self.warmup_ratio),
                ("short_ratio", self.short_ratio),
            )
            if not 0 <= value < 1
        ]
        faults += [
            f"{name}={value!r} must not be negative."
            for name, value in (("weight_decay", self.weight_decay), ("seed", self.seed))
            if value < 0
        ]
        if faults:
            raise ConfigError(faults)

    def completed(self, defaults: "PretrainingSettings") -> "PretrainingSettings":
        """With a preset's values where none was chosen."""
        chosen: dict[str, Any] = {
            name: getattr(defaults, name) for name in _OF_PRESETS if getattr(self, name) is None
        }
        return replace(self, **chosen)


_OF_PRESETS = ("vocab_size", "max_length", "batch_size", "learning_rate", "short_length")
_POSITIVE = frozenset(
    "vocab_size max_length short_length batch_size gradient_accumulation_steps learning_rate "
    "max_grad_norm max_steps max_words max_seconds eval_steps".split()
)
Architecture = TypeVar("Architecture")


@dataclass(frozen=True)
class Preset(Generic[Architecture]):
    """A size of a language model.

    Attributes:
        about: intended use.
        parameters: number of parameters of the encoder, with a vocabulary of the preset's size; an
            ELMo's softmax, which no task reads, is not among them.
        architecture: shape of the encoder: arguments of `BertConfig`, or an ELMo's options.
        settings: values that are used where none is chosen.
    """

    about: str
    parameters: int
    architecture: Architecture
    settings: PretrainingSettings


def find_preset(presets: Mapping[str, Preset[Architecture]], name: str) -> Preset[Architecture]:
    """The preset of a name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in presets:
        raise ConfigError(f"There is no preset {name!r}. {did_you_mean(name, list(presets))}")
    return presets[name]


def _bert(layers: int, hidden_size: int, heads: int) -> dict[str, int]:
    """A BERT; a head of attention has 64 dimensions, or 32 in the smallest."""
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden_size,
    }


def _elmo(projection: int, cells: int, character: int, filters: tuple[int, ...]) -> ElmoOptions:
    """Two layers without clips; `filters` of the convolutions of width 1, 2, ..."""
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


def _settings(
    vocab_size: int, max_length: int, batch_size: int, rate: float, short_length: int | None = None
) -> PretrainingSettings:
    return PretrainingSettings(
        vocab_size=vocab_size,
        max_length=max_length,
        batch_size=batch_size,
        learning_rate=rate,
        short_length=short_length,
    )


_USES = {
    "tiny": "tests: seconds",
    "mini": "a processor: an hour",
    "small": "a GPU: half an hour",
}
BERT_PRESETS: Mapping[str, Preset[dict[str, int]]] = {
    "tiny": Preset(_USES["tiny"], 168_320, _bert(2, 64, 2), _settings(1_000, 64, 16, 2e-3)),
    "mini": Preset(_USES["mini"], 5_289_984, _bert(4, 256, 4), _settings(8_192, 128, 16, 1e-3, 32)),
    "small": Preset(
        _USES["small"], 33_675_264, _bert(8, 512, 8), _settings(16_384, 128, 256, 7e-4, 32)
    ),
}
ELMO_PRESETS: Mapping[str, Preset[ElmoOptions]] = {
    "tiny": Preset(
        _USES["tiny"], 43_224, _elmo(16, 64, 8, (8, 8, 16)), _settings(1_000, 32, 16, 5e-3)
    ),
    "mini": Preset(
        _USES["mini"],
        2_550_224,
        _elmo(128, 512, 16, (32, 32, 64, 64, 64)),
        _settings(20_000, 64, 32, 2e-3),
    ),
    "small": Preset(
        _USES["small"],
        5_363_920,
        _elmo(128, 1024, 16, (32, 32, 64, 128, 256)),
        _settings(60_000, 64, 256, 2e-3),
    ),
}
CONTINUED = _settings(vocab_size=0, max_length=128, batch_size=32, rate=1e-4)
