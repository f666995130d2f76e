"""How a language model is pretrained, apart from what it is and what it reads."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from totune.errors import ConfigError
from totune.pretraining.presets import Training


@dataclass(frozen=True)
class PretrainingSettings:
    """What can be chosen; None is what the preset says.

    The end is the first of `max_steps`, `max_words` and `max_seconds` that are given; if none is,
    the text is read once. The rate rises, then falls linearly to zero at the end.

    Attributes:
        vocab_size: word pieces, or words of the softmax.
        max_length: pieces or words of a row, what frames them included.
        batch_size: rows of an optimizer step, over all processes.
        gradient_accumulation_steps: parts that a step is computed in, to need less memory.
        short_length: pieces of a row in the first part of the training (bert); a step then reads
            more rows, about as many pieces.
        short_ratio: share of the training that reads such rows.
        learning_rate: at its peak.
        warmup_ratio: share of the training in which the rate rises.
        weight_decay: decoupled, of matrices.
        max_grad_norm: gradients are clipped to this norm.
        max_steps: optimizer steps.
        max_words: words to read, told apart by white space; also how much of the corpus is used.
        max_seconds: of training, evaluations included.
        eval_steps: steps between two evaluations; None for a tenth of the training.
        seed: of initialisation, order and masks.
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
        """Raises `ConfigError` with every value that cannot be."""
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

    def fitted(self, training: Training) -> "PretrainingSettings":
        """With a preset's values where none was chosen."""
        chosen: dict[str, Any] = {
            name: value for name, value in asdict(training).items() if getattr(self, name) is None
        }
        return replace(self, **chosen)


_POSITIVE = frozenset(
    "vocab_size max_length short_length batch_size gradient_accumulation_steps learning_rate "
    "max_grad_norm max_steps max_words max_seconds eval_steps".split()
)
