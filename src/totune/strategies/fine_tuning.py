"""Fine-tuning: everything trains, at one rate or at a rate per block."""

from dataclasses import dataclass

from totune.model import Model
from totune.strategies.base import STRATEGIES, Count, Decay, Rate, Share, Strategy
from totune.strategies.phases import Epochs, Group, LinearDecay, Phase


@STRATEGIES.register("fine-tuning")
@dataclass(frozen=True)
class FineTuning(Strategy):
    """Trains encoder and head together (Devlin et al. 2019; Peters et al. 2019, 3.2).

    Attributes:
        learning_rate: peak rate of the head and, with `layer_decay` 1, of everything.
        layer_decay: each block trains at this times the rate of the block above it;
            Peters et al. use 0.4 for ELMo (A.1), 1 gives one rate.
        warmup_ratio: share of the steps with rising rate; it then falls linearly to 0.
    """

    learning_rate: Rate = 1e-4
    layer_decay: Rate = 1.0
    weight_decay: Decay = 0.01
    num_train_epochs: Count = 3
    warmup_ratio: Share = 0.1

    def plan(self, model: Model) -> list[Phase]:
        depth = model.encoder.depth
        above = tuple(self._group(part, 0) for part in ("head", "mixing", "pooler"))
        if self.layer_decay == 1.0:
            below = tuple(self._group(part, 0) for part in ("layer.*", "embeddings"))
        else:
            layers = tuple(self._group(f"layer.{d}", depth - d + 1) for d in range(depth, 0, -1))
            below = (*layers, self._group("embeddings", depth + 1))
        schedule = LinearDecay(self.warmup_ratio)
        return [Phase("all", above + below, schedule, Epochs(self.num_train_epochs))]

    def _group(self, parts: str, below_head: int) -> Group:
        rate = self.learning_rate * self.layer_decay**below_head
        return Group(parts, rate, self.weight_decay)
