"""Fine-tuning: everything trains, at one rate or at a rate per block."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from totune.model import Model
from totune.ranges import Choices
from totune.strategies.base import (
    STRATEGIES,
    Count,
    LayerDecay,
    LearningRate,
    Ratio,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import FINE_TUNING, TrainingRule
from totune.strategies.phases import Group, Phase
from totune.strategies.rates import ScheduleName, above_layers, by_block, schedule_of, stop_after


@STRATEGIES.register("fine-tuning")
@dataclass(frozen=True)
class FineTuning(Strategy):
    """Trains encoder and head together (Devlin et al. 2019; Peters et al. 2019, 3.2).

    Attributes:
        learning_rate: peak rate of the head and, with `layer_decay` 1, of everything.
        layer_decay: each block trains at this times the rate of the block above it; Peters et al.
            use 0.4 for ELMo (A.1), Howard and Ruder (2018) 1 / 2.6, 1 gives one rate.
        schedule: how the rate moves: `linear` rise and fall, `slanted-triangular` (Howard and
            Ruder 2018), or `constant`.
        warmup_ratio: share of the steps with rising rate (cut_frac of slanted-triangular).
        ratio: of slanted-triangular: how many times smaller its lowest rate is than its peak.
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = FINE_TUNING

    learning_rate: LearningRate = FINE_TUNING.learning_rate
    layer_decay: LayerDecay = 1.0
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = FINE_TUNING.usual_epochs
    patience: Count | None = None
    schedule: Annotated[ScheduleName, Choices(("linear", "slanted-triangular"))] = "linear"
    warmup_ratio: Warmup = 0.1
    ratio: Ratio = 32.0

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        if self.layer_decay == 1.0:
            below = tuple(Group(part, *rates) for part in ("layer.*", "embeddings"))
        else:
            below = by_block(model.encoder.depth, *rates, self.layer_decay)
        schedule = schedule_of(self.schedule, self.warmup_ratio, self.ratio)
        stop = stop_after(self.num_train_epochs, self.patience)
        return [Phase("all", above_layers(*rates) + below, schedule, stop)]
