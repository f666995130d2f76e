"""Adapters: small bottlenecks between the encoder's modules train, its own weights stay frozen.

Houlsby et al. 2019; shared between places and read by the pretrained pooler as in Mohebbi and
Rajaee.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from totune.adapters.adapters import AdapterConfig, insert_adapters
from totune.adapters.bottleneck import Activation
from totune.adapters.sharing import Placement, Sharing
from totune.encoders.encoder import Encoder
from totune.heads.base import InputKind
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
from totune.strategies.defaults import ADAPTERS, TrainingRule
from totune.strategies.phases import Group, Phase
from totune.strategies.rates import insert_phase, stop_after


@STRATEGIES.register("adapters")
@dataclass(frozen=True)
class BottleneckAdapters(Strategy):
    """Trains bottleneck adapters and the head; layers below the lowest adapter are computed once.

    Attributes:
        bottleneck_size: the width of a bottleneck.
        sharing: `per-sublayer`, two adapters in each layer; `per-layer`, one in both its places;
            `every-N`, one for N consecutive layers; or a list with an entry for each layer: a
            name, null for none, or a pair of them for attention and feed-forward, equal names
            being one adapter. Layers that share their weights (ALBERT) share their adapters too.
        placement: `houlsby`, behind both sublayers, before residual and layer norm; `pfeiffer`,
            behind the feed-forward alone, around its layer norm.
        activation: in the bottleneck.
        train_layer_norms: whether the layer norms of the encoder's layers train too, in all
            layers; then nothing but the embeddings is computed once.
        classifier_layers: 2 puts a layer with tanh before the head's last one where the head is
            linear; 1 leaves the head as usual for the encoder.
        learning_rate: peak rate; this and 10 epochs is what Mohebbi and Rajaee use on GLUE, 1e-4
            and 50 epochs elsewhere (section 6.1).
        patience: epochs without a better dev score before training stops; null to run
            all epochs.
    """

    rule: ClassVar[TrainingRule] = ADAPTERS

    bottleneck_size: Annotated[Count, Ints(16, 256, log=True)] = 64
    sharing: Sharing = "per-sublayer"
    placement: Placement = "houlsby"
    activation: Activation = "gelu"
    train_layer_norms: bool = False
    classifier_layers: Literal[1, 2] = 1
    learning_rate: LearningRate = ADAPTERS.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = ADAPTERS.usual_epochs
    patience: Count | None = None
    warmup_ratio: Warmup = 0.1

    def head_defaults(self, encoder: Encoder, wants: InputKind = "pooled") -> dict[str, Any]:
        usual = super().head_defaults(encoder, wants)
        if self.classifier_layers == 1:
            return usual
        return usual | {"layers": 2, "activation": "tanh"}

    def prepare(self, model: Model) -> None:
        """Puts the adapters in.

        Raises:
            ConfigError: if the encoder has not the places that the options ask for.
        """
        config = AdapterConfig(self.bottleneck_size, self.sharing, self.placement, self.activation)
        insert_adapters(model.encoder, config)

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        norms = (Group("layer.*", *rates, kinds=("norm",)),) if self.train_layer_norms else ()
        stop = stop_after(self.num_train_epochs, self.patience)
        return [insert_phase("adapters", rates, stop, self.warmup_ratio, *norms)]
