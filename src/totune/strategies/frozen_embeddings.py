"""Fine-tuning with the embeddings frozen: the larger half of a small encoder's parameters."""

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
from totune.strategies.defaults import FINE_TUNING, TrainingRule
from totune.strategies.phases import Group, LinearDecay, Phase
from totune.strategies.rates import above_layers, stop_after


@STRATEGIES.register("frozen-embeddings")
@dataclass(frozen=True)
class FrozenEmbeddings(Strategy):
    """Trains every layer, the pooler and the head, but not the embeddings.

    Words that the training data lacks keep their places among those it has.

    Attributes:
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = FINE_TUNING

    learning_rate: LearningRate = FINE_TUNING.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = FINE_TUNING.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        groups = (*above_layers(*rates), Group("layer.*", *rates))
        schedule, stop = (
            LinearDecay(self.warmup_ratio),
            stop_after(self.num_train_epochs, self.patience),
        )
        return [Phase("all but embeddings", groups, schedule, stop)]
