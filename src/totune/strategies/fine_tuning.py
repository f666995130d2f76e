"""Fine-tuning: everything trains, at one rate or at a rate per block.

The top layers may begin anew: those of BERT are so specialised in what it was pretrained for that
this made training on few rows better and steadier (Zhang et al. 2021, "Revisiting few-sample BERT
fine-tuning", section 5).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError
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
        reinit_layers: so many top layers, and the pooler with them, begin with random weights
            instead of pretrained ones (Zhang et al. 2021, section 5, who try 1 to 6 of 24); 0
            leaves the pooler, too.
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
    reinit_layers: Annotated[int, Field(ge=0)] = 0

    def prepare(self, model: Model) -> None:
        """Re-initialises the top layers.

        Raises:
            ConfigError: if the encoder has fewer layers, or is none of transformers.
        """
        if not self.reinit_layers:
            return
        encoder, asked = model.encoder, f"fine-tuning: reinit_layers={self.reinit_layers}"
        if not isinstance(encoder, TransformersEncoder):
            raise ConfigError(
                f"{asked} is for encoders of transformers; this one is {encoder.kind}. Use 0."
            )
        if self.reinit_layers > encoder.depth:
            raise ConfigError(
                f"{asked} is more than the {encoder.depth} layers of this encoder. Use at most "
                f"{encoder.depth}; Zhang et al. (2021) re-initialise up to a quarter of them."
            )
        encoder.reinitialise(self._reinitialised(encoder.depth))

    def preparation(self, model: Model) -> str:
        if not self.reinit_layers:
            return ""
        layers = ", ".join(f"layer.{d}" for d in self._reinitialised(model.encoder.depth))
        pooler = "" if model.encoder.pooler is None else " and the pooler"
        return f"Random weights, not pretrained ones, at the start: {layers}{pooler}."

    def _reinitialised(self, depth: int) -> range:
        """Depths of the top layers, of `depth`."""
        return range(depth - self.reinit_layers + 1, depth + 1)

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        if self.layer_decay == 1.0:
            below = tuple(Group(part, *rates) for part in ("layer.*", "embeddings"))
        else:
            below = by_block(model.encoder.depth, *rates, self.layer_decay)
        schedule = schedule_of(self.schedule, self.warmup_ratio, self.ratio)
        stop = stop_after(self.num_train_epochs, self.patience)
        return [Phase("all", above_layers(*rates) + below, schedule, stop)]
