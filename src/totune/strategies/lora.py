"""LoRA: low-rank updates of the encoder's projections train, its own weights stay frozen.

Hu et al. 2021. The modules are PEFT's.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from totune.adapters.peft import insert_peft, peft_config
from totune.adapters.peft_targets import leave_out_pooler
from totune.model import Model
from totune.ranges import Floats, Ints
from totune.strategies.base import (
    STRATEGIES,
    Count,
    LearningRate,
    Rate,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import LORA, TrainingRule
from totune.strategies.phases import Phase
from totune.strategies.rates import insert_phase, stop_after


@STRATEGIES.register("lora")
@dataclass(frozen=True)
class LoRA(Strategy):
    """Trains W + (lora_alpha / r) B A for frozen W, and the head; the pooler stays frozen.

    Layers that share their weights (ALBERT) share their update, too.

    Attributes:
        r: the rank of an update.
        lora_alpha: updates are scaled by lora_alpha / r.
        lora_dropout: of what goes into an update, while training.
        target_modules: names of linear maps, such as `dense`, or ends of their paths, such as
            `output.dense`; null for attention's query and value projections.
        learning_rate: peak rate, larger than fine-tuning's.
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = LORA

    r: Annotated[Count, Ints(2, 64, log=True)] = 8
    lora_alpha: Annotated[Rate, Floats(4.0, 64.0, log=True)] = 16.0
    lora_dropout: Annotated[float, Field(ge=0, lt=1), Floats(0.0, 0.2)] = 0.0
    target_modules: tuple[str, ...] | None = None
    learning_rate: LearningRate = LORA.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = LORA.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    def prepare(self, model: Model) -> None:
        """Puts the updates in; at first they change nothing.

        Raises:
            ConfigError: if the encoder has not the modules to update.
        """
        targets = self.target_modules
        facts = {
            "peft_type": "LORA",
            "r": self.r,
            "lora_alpha": self.lora_alpha,
            "lora_dropout": self.lora_dropout,
            "target_modules": None if targets is None else list(targets),
        }
        config = peft_config(facts)
        leave_out_pooler(model.encoder, config)
        insert_peft(model.encoder, config)

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        stop = stop_after(self.num_train_epochs, self.patience)
        return [insert_phase("lora", rates, stop, self.warmup_ratio)]
