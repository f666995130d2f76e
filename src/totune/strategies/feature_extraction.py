"""Feature extraction: the encoder stays frozen, a head reads a mix of all its layers.

Peters et al. 2019, section 3.2: "all layers weighted by learned scalars". The frozen encoder is
computed once. With fixed weights a linear head is a convex problem, which is solved: on few rows
that is worth more than learned weights (docs/defaults.md).
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Layers, Pooling
from totune.heads.base import InputKind
from totune.model import Model
from totune.ranges import Floats, Ints
from totune.strategies.base import STRATEGIES, Count, Rate, Strategy, Warmup, WeightDecay
from totune.strategies.defaults import TrainingFacts, frozen_patience
from totune.strategies.phases import Group, LinearDecay, Phase, Plateau, solved_head


@STRATEGIES.register("feature-extraction")
@dataclass(frozen=True)
class FeatureExtraction(Strategy):
    """Trains head and mixing on frozen features.

    One linear layer on one vector per text or pair (heads `linear` with layers=1, and `siamese`) is
    solved where no weights of a mix are learned: the penalty is chosen by cross-validation, and
    options of gradient steps are without effect.

    Attributes:
        layers: `auto` is the `mean` for heads that read vectors, and a learned `scalar-mix` for
            those that read tokens.
        solver: `auto` solves what can be solved; `gradient` trains it like any other head.
        pooling: how tokens become one vector, for heads that read one; `auto` is their mean.
        learning_rate: peak rate; the head starts from nothing, so it is larger than for tuning.
        num_train_epochs: upper limit of the epochs.
        patience: epochs without a better dev score before it stops; all of them where the dev split
            is too small to tell.
    """

    layers: Literal[Layers, "auto"] = "auto"
    solver: Literal["auto", "gradient"] = "auto"
    learning_rate: Annotated[Rate, Floats(3e-4, 3e-2, log=True)] = 3e-3
    weight_decay: WeightDecay = 0.01
    num_train_epochs: Annotated[Count, Ints(10, 80, log=True)] = 40
    patience: Count = 8
    warmup_ratio: Warmup = 0.1

    def usual_layers(self, wants: InputKind) -> Layers:
        if self.pooling == "last-four":
            return "top"
        return "mean" if wants.startswith("pooled") else "scalar-mix"

    def usual_pooling(self, encoder: Encoder) -> Pooling:
        return "mean"

    def head_defaults(self, encoder: Encoder, wants: InputKind = "pooled") -> dict[str, Any]:
        return {}

    def data_defaults(self, facts: TrainingFacts) -> dict[str, Any]:
        return {"patience": frozen_patience(self.num_train_epochs, self.patience, facts.dev_rows)}

    def unused_options(self, model: Model) -> frozenset[str]:
        if not self._solves(model):
            return frozenset()
        steps = {"learning_rate", "weight_decay", "num_train_epochs", "warmup_ratio"}
        return frozenset({*steps, "head.dropout"})

    def _solves(self, model: Model) -> bool:
        return self.solver == "auto" and model.is_linear_probe

    def plan(self, model: Model) -> list[Phase]:
        if self._solves(model):
            return [solved_head()]
        parts = ("mixing", "head")
        groups = tuple(Group(part, self.learning_rate, self.weight_decay) for part in parts)
        stop = Plateau(self.num_train_epochs, self.patience)
        return [Phase("head", groups, LinearDecay(self.warmup_ratio), stop)]
