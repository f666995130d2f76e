"""How a language model is pretrained, apart from what it is and what it reads."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from totune.errors import ConfigError
from totune.registry import DeclaredSettings, setting

if TYPE_CHECKING:
    from totune.pretraining.presets import Training

TRAINING, BUDGET, MACHINE = "Training", "How long", "Machine"


@dataclass(frozen=True)
class PretrainingSettings(DeclaredSettings):
    """What can be chosen; None is what the preset says.

    The end is the first of `max_steps`, `max_words` and `max_seconds` that are given; if none is,
    the text is read once. The rate rises, then falls linearly to zero at the end.
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

    def check(self) -> None:
        """Raises `ConfigError` with every value that cannot be."""
        faults = self.faults()
        if faults:
            raise ConfigError(faults)

    def fitted(self, training: "Training") -> "PretrainingSettings":
        """With a preset's values where none was chosen."""
        chosen: dict[str, Any] = {
            name: value for name, value in asdict(training).items() if getattr(self, name) is None
        }
        return replace(self, **chosen)
