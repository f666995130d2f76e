"""How a language model is pretrained, and presets: sizes by name, each with its settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from totune.encoders.elmo.options import ElmoOptions
from totune.errors import ConfigError
from totune.registry import DeclaredSettings, did_you_mean, setting

TRAINING, BUDGET, MACHINE = "Training", "How long", "Machine"


@dataclass(frozen=True)
class PretrainingSettings(DeclaredSettings):
    """The settings of a pretraining; None stands for the preset's value.

    Training ends at the first of `max_steps`, `max_words` and `max_seconds` that are given; without
    any, after one pass over the text. The learning rate rises, then falls linearly to 0 at the end.
    """

    max_words: int | None = setting(
        None,
        "Words to read; whole documents are used until there are so many. A smaller text is read "
        "several times.",
        BUDGET,
        gt=0,
    )
    max_steps: int | None = setting(None, "Optimizer steps.", BUDGET, gt=0)
    max_seconds: float | None = setting(
        None,
        "Time to train. If there is no limit, the text is read once.",
        BUDGET,
        metavar="DURATION",
        typed="duration",
        flag="max_time",
        gt=0,
    )
    eval_steps: int | None = setting(
        None, "Steps between evaluations; a tenth of the whole.", BUDGET, gt=0
    )
    vocab_size: int | None = setting(
        None, "Word pieces (bert), words of the softmax (elmo).", TRAINING, gt=0
    )
    max_length: int | None = setting(
        None, "Word pieces (bert) or words (elmo) of a row.", TRAINING, gt=0
    )
    batch_size: int | None = setting(
        None, "Rows of an optimizer step, over all devices.", TRAINING, gt=0
    )
    learning_rate: float | None = setting(
        None, "Peak rate; the preset's if not named.", TRAINING, gt=0
    )
    warmup_ratio: float = setting(
        0.06, "Share of the training with a rising rate.", TRAINING, ge=0, lt=1
    )
    weight_decay: float = setting(0.01, "Decoupled weight decay.", TRAINING, ge=0)
    max_grad_norm: float = setting(1.0, "Gradients are clipped to this norm.", TRAINING, gt=0)
    seed: int = setting(0, "Of initial weights, order and masks.", TRAINING, ge=0)
    gradient_accumulation_steps: int = setting(
        1,
        "Parts that a step is computed in, to need less memory; numbers stay the same.",
        MACHINE,
        gt=0,
    )
    precision: Literal["auto", "bf16", "fp32"] = setting(
        "auto", "auto, bf16 or fp32.", MACHINE, noun="a precision"
    )
    short_length: int | None = setting(
        None,
        "Pieces of a row in the first part of the training (bert), which learns faster from short "
        "rows; the preset's if not named.",
        TRAINING,
        gt=0,
    )
    short_ratio: float = setting(
        0.8, "Share of the training that reads short rows.", TRAINING, ge=0, lt=1
    )

    def completed(self, defaults: "PretrainingSettings") -> "PretrainingSettings":
        """With a preset's values where none was chosen."""
        chosen: dict[str, Any] = {
            name: getattr(defaults, name) for name in _OF_PRESETS if getattr(self, name) is None
        }
        return replace(self, **chosen)


_OF_PRESETS = ("vocab_size", "max_length", "batch_size", "learning_rate", "short_length")
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
