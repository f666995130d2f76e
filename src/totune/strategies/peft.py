"""Any method of the PEFT library that lives in an encoder: IA3, prefix tuning and their like.

IA3 is of Liu et al. 2022, prefix tuning of Li and Liang 2021. LoRA has a strategy of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from totune.adapters.peft import insert_peft, peft_config
from totune.adapters.peft_support import plain
from totune.adapters.peft_targets import leave_out_pooler
from totune.model import Model
from totune.strategies.base import (
    STRATEGIES,
    Count,
    Decay,
    LearningRate,
    Strategy,
    TrainEpochs,
    Warmup,
)
from totune.strategies.defaults import PEFT, TrainingRule
from totune.strategies.phases import Phase
from totune.strategies.rates import insert_phase, stop_after

_IA3 = "IA3"


@STRATEGIES.register("peft")
@dataclass(frozen=True)
class Peft(Strategy):
    """Trains what a method of PEFT inserts, and the head; the encoder's own weights stay frozen.

    Attributes:
        config: what an `adapter_config.json` of PEFT says: `peft_type` and options of PEFT's class
            for it, such as `{"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 20}`. Modules
            that it leaves open are chosen by the encoder's type. Null for IA3.
        learning_rate: peak rate; so few parameters need a large one (Liu et al. 2022: 3e-3).
        weight_decay: none, since it would pull IA3's factors to 0, and 1 is what changes nothing.
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = PEFT

    config: Mapping[str, Any] | None = None
    learning_rate: LearningRate = PEFT.learning_rate
    weight_decay: Decay = 0.0
    num_train_epochs: TrainEpochs = PEFT.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    def __post_init__(self) -> None:
        """Checks the configuration, and says what null stands for, since it decides results.

        Raises:
            ConfigError: as `peft_config`.
        """
        facts = {"peft_type": _IA3} if self.config is None else plain(self.config)
        peft_config(facts)
        object.__setattr__(self, "config", facts)

    @property
    def label(self) -> str:
        return f"peft-{self._facts['peft_type'].lower().replace('_', '-')}"

    def prepare(self, model: Model) -> None:
        """Puts the method's modules in.

        Raises:
            ConfigError: if the method does not fit the encoder.
        """
        config = peft_config(self._facts)
        leave_out_pooler(model.encoder, config)
        insert_peft(model.encoder, config)

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        stop = stop_after(self.num_train_epochs, self.patience)
        return [insert_phase(self.label, rates, stop, self.warmup_ratio)]

    @property
    def _facts(self) -> Mapping[str, Any]:
        assert self.config is not None, "said when it was made"
        return self.config
