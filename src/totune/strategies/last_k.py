"""Last-k: the head and the top k blocks train, what lies below is frozen and computed once.

Hart (section 4.2) trains the last two layers as a regularised form of fine-tuning.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from totune.errors import ConfigError
from totune.model import Model
from totune.ranges import Ints
from totune.strategies.base import (
    STRATEGIES,
    Count,
    LearningRate,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import LAST_K, TrainingRule
from totune.strategies.phases import Group, LinearDecay, Phase
from totune.strategies.rates import stop_after


@STRATEGIES.register("last-k")
@dataclass(frozen=True)
class LastK(Strategy):
    """Trains the top k layers, the pooler and the head; `last-2` is short for k=2.

    Attributes:
        k: how many layers train, counted from the top.
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = LAST_K

    k: Annotated[Count, Ints(1, 4)] = 2
    learning_rate: LearningRate = LAST_K.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = LAST_K.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    @property
    def label(self) -> str:
        return f"last-{self.k}"

    def plan(self, model: Model) -> list[Phase]:
        """The single phase.

        Raises:
            ConfigError: if the encoder has fewer than k layers, or the lowest layer to train
                shares its weights with the one below it.
        """
        depth = model.encoder.depth
        if not 1 <= self.k <= depth:
            raise ConfigError(f"last-k: k={self.k} is outside 1..{depth}, the encoder's layers.")
        if self._shares_below(model):
            raise ConfigError(
                f"last-k: k={self.k} cuts between layers of this {model.encoder.kind} encoder that "
                "share their weights, so neither can train alone. Use fine-tuning or "
                "feature-extraction."
            )
        layers = tuple(f"layer.{d}" for d in range(depth, depth - self.k, -1))
        groups = tuple(
            Group(part, self.learning_rate, self.weight_decay)
            for part in ("head", "mixing", "pooler", *layers)
        )
        schedule = LinearDecay(self.warmup_ratio)
        stop = stop_after(self.num_train_epochs, self.patience)
        return [Phase(f"top {self.k}", groups, schedule, stop)]

    def _shares_below(self, model: Model) -> bool:
        """Whether some trained layer's weights are those of a frozen one too."""
        parts, lowest = model.parts(), model.encoder.depth - self.k + 1
        frozen = {id(p) for d in range(1, lowest) for _, p in parts[f"layer.{d}"]}
        return any(id(p) in frozen for _, p in parts[f"layer.{lowest}"])
