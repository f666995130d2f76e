"""BitFit-like tuning: of the encoder, biases and layer norms alone train.

Ben Zaken et al. 2022 train every bias; here the weights of layer norms train too, which types
without biases (ModernBERT) have alone.
"""

from dataclasses import dataclass
from typing import ClassVar

from totune.model import Model
from totune.strategies.base import (
    STRATEGIES,
    Count,
    LearningRate,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import BITFIT, TrainingRule
from totune.strategies.phases import Group, LinearDecay, Phase
from totune.strategies.rates import stop_after


@STRATEGIES.register("bitfit")
@dataclass(frozen=True)
class BitFit(Strategy):
    """Trains the head, and biases and layer norms everywhere else.

    Attributes:
        learning_rate: peak rate; so few parameters need a larger one than fine-tuning.
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = BITFIT

    learning_rate: LearningRate = BITFIT.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = BITFIT.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        above = (Group("head", *rates), Group("mixing", *rates))
        groups = (*above, Group("*", *rates, kinds=("bias", "norm")))
        schedule, stop = (
            LinearDecay(self.warmup_ratio),
            stop_after(self.num_train_epochs, self.patience),
        )
        return [Phase("biases and norms", groups, schedule, stop)]
