"""Feature extraction: the encoder stays frozen, a head reads a learned mix of all its layers.

Peters et al. 2019, section 3.2: "all layers weighted by learned scalars". The frozen encoder is
computed once. One layer under a linear head is a convex problem, which is solved.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Layers, Pooling
from totune.heads.base import Wants
from totune.model import Model
from totune.ranges import Floats, Ints
from totune.strategies.base import STRATEGIES, Count, Rate, Strategy, Warmup, WeightDecay
from totune.strategies.phases import Group, LinearDecay, Phase, Plateau, solved_head


@STRATEGIES.register("feature-extraction")
@dataclass(frozen=True)
class FeatureExtraction(Strategy):
    """Trains head and mixing on frozen features.

    With layers=top, one linear layer on one vector per text or pair (heads `linear` with layers=1
    and `siamese`) is solved: the penalty is chosen by cross-validation, and options of gradient
    steps are without effect.

    Attributes:
        pooling: how tokens become one vector, for heads that read one; `auto` is their mean.
        learning_rate: peak rate; the head starts from nothing, so it is larger than for tuning.
        num_train_epochs: at the most.
        patience: epochs without a better dev score before it stops.
    """

    layers: Layers = "scalar-mix"
    learning_rate: Annotated[Rate, Floats(3e-4, 3e-2, log=True)] = 3e-3
    weight_decay: WeightDecay = 0.01
    num_train_epochs: Annotated[Count, Ints(10, 80, log=True)] = 40
    patience: Count = 8
    warmup_ratio: Warmup = 0.1

    def usual_pooling(self, encoder: Encoder) -> Pooling:
        return "mean"

    def head_defaults(self, encoder: Encoder, wants: Wants = "pooled") -> dict[str, Any]:
        return {}

    def plan(self, model: Model) -> list[Phase]:
        if model.is_linear_probe:
            return [solved_head()]
        parts = ("mixing", "head")
        groups = tuple(Group(part, self.learning_rate, self.weight_decay) for part in parts)
        stop = Plateau(self.num_train_epochs, self.patience)
        return [Phase("head", groups, LinearDecay(self.warmup_ratio), stop)]
