"""Gradual unfreezing: the head first, then one more block per epoch from the top.

Howard and Ruder 2018 (section 3.3); Peters et al. 2019 (A.1) use it for ELMo on SST-2 and NER. What
is still frozen is read from the cache, and each phase needs less of it.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

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
from totune.strategies.defaults import GRADUAL_UNFREEZING, TrainingRule
from totune.strategies.phases import Epochs, Group, Phase, Schedule, Stretch
from totune.strategies.rates import ScheduleName, above_layers, by_block, new_parts, schedule_of


@STRATEGIES.register("gradual-unfreezing")
@dataclass(frozen=True)
class GradualUnfreezing(Strategy):
    """Opens the encoder from the top, block by block; what trains already keeps its moments.

    Layers that share their weights open together; the pretrained pooler opens with the top one.

    Attributes:
        learning_rate: peak rate of the head.
        layer_decay: each block trains at this times the rate of the block above it.
        epochs_per_block: epochs between two openings.
        num_train_epochs: epochs in which everything trains.
        schedule: `linear`, `slanted-triangular` or `constant`.
        window: whether the schedule starts anew in each `phase` (as in AllenNLP) or runs once
            over the whole `run`.
        warmup_ratio: share of the window with rising rate (cut_frac of slanted-triangular).
        ratio: of slanted-triangular: how many times smaller its lowest rate is than its peak.
    """

    rule: ClassVar[TrainingRule] = GRADUAL_UNFREEZING

    learning_rate: LearningRate = GRADUAL_UNFREEZING.learning_rate
    layer_decay: LayerDecay = 0.8
    weight_decay: WeightDecay = 0.01
    epochs_per_block: Count = 1
    num_train_epochs: TrainEpochs = GRADUAL_UNFREEZING.usual_epochs
    schedule: Annotated[ScheduleName, Choices(("linear", "slanted-triangular"))] = (
        "slanted-triangular"
    )
    window: Literal["phase", "run"] = "phase"
    warmup_ratio: Warmup = 0.1
    ratio: Ratio = 32.0

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        blocks = by_block(model.encoder.depth, *rates, self.layer_decay)
        opened = _openings(model)
        epochs = [self.epochs_per_block] * len(opened) + [self.num_train_epochs]
        names = ["head", *(_name(blocks[:count]) for count in opened)]
        phases = []
        for name, count, own, done in zip(
            names, [0, *opened], epochs, _before(epochs), strict=True
        ):
            schedule = self._schedule(own, done, sum(epochs))
            groups = above_layers(*rates) + blocks[:count] if count else new_parts(*rates)
            phases.append(Phase(name, groups, schedule, Epochs(own)))
        return phases

    def _schedule(self, own: int, done: int, total: int) -> Schedule:
        whole = schedule_of(self.schedule, self.warmup_ratio, self.ratio)
        return whole if self.window == "phase" else Stretch(whole, done / total, own / total)


def _before(epochs: list[int]) -> list[int]:
    """How many epochs lie before each phase."""
    return [sum(epochs[:phase]) for phase in range(len(epochs))]


def _name(open_blocks: tuple[Group, ...]) -> str:
    lowest = open_blocks[-1].parts
    return "all" if lowest == "embeddings" else lowest.replace(".", " ")


def _openings(model: Model) -> list[int]:
    """How many blocks, from the top, are open in each phase after the first.

    A block whose weights are those of the next one below opens with it.
    """
    depth, parts = model.encoder.depth, model.parts()
    blocks = [*(f"layer.{d}" for d in range(depth, 0, -1)), "embeddings"]
    held = [{id(parameter) for _, parameter in parts[block]} for block in blocks]
    return [
        count
        for count in range(1, len(blocks) + 1)
        if not set().union(*held[:count]) & set().union(*held[count:])
    ]
