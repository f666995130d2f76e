"""BitFit-like tuning: of the encoder, biases and layer norms alone train.

Ben Zaken et al. 2022 train every bias; here the weights of layer norms train too, which types
without biases (ModernBERT) have alone.
"""

from dataclasses import dataclass
from typing import Annotated

from totune.model import Model
from totune.ranges import Floats, Ints
from totune.strategies.base import STRATEGIES, Count, Rate, Strategy, Warmup, WeightDecay
from totune.strategies.phases import Epochs, Group, LinearDecay, Phase


@STRATEGIES.register("bitfit")
@dataclass(frozen=True)
class BitFit(Strategy):
    """Trains the head, and biases and layer norms everywhere else.

    Attributes:
        learning_rate: peak rate; so few parameters need a larger one than fine-tuning.
    """

    learning_rate: Annotated[Rate, Floats(3e-4, 1e-2, log=True)] = 3e-3
    weight_decay: WeightDecay = 0.01
    num_train_epochs: Annotated[Count, Ints(3, 10)] = 5
    warmup_ratio: Warmup = 0.1

    def plan(self, model: Model) -> list[Phase]:
        rates = self.learning_rate, self.weight_decay
        above = (Group("head", *rates), Group("mixing", *rates))
        groups = (*above, Group("*", *rates, kinds=("bias", "norm")))
        schedule, stop = LinearDecay(self.warmup_ratio), Epochs(self.num_train_epochs)
        return [Phase("biases and norms", groups, schedule, stop)]
