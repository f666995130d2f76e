"""Stack-and-finetune (Wang et al. 2019): a network on the frozen encoder, then both together.

Phase 1 is feature extraction with all pretrained parameters fixed, the pooler's too; phase 2 is
fine-tuning at a smaller rate. Phase 1 must not run until it over-fits, and when it should stop is
the paper's open question (its Discussions); three answers can be had here. A fourth is to solve it:
a linear probe before fine-tuning keeps the features from being distorted for a random head (Kumar
et al. 2022, "Fine-tuning can distort pretrained features and underperform out-of-distribution",
section 3.4: LP-FT).
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from totune.errors import ConfigError
from totune.model import Model
from totune.ranges import Choices, Floats, Ints
from totune.strategies.base import (
    STRATEGIES,
    Count,
    Decay,
    LayerDecay,
    LearningRate,
    Rate,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import FINE_TUNING, TrainingFacts, TrainingRule
from totune.strategies.fine_tuning import FineTuning
from totune.strategies.phases import Constant, Epochs, Gap, Phase, Plateau, Stop, solved_head
from totune.strategies.rates import new_parts

StopName = Literal["gap", "epochs", "convergence"]


@STRATEGIES.register("stack-and-finetune")
@dataclass(frozen=True)
class StackAndFinetune(Strategy):
    """Trains what stands on the frozen encoder, then everything.

    Attributes:
        first_phase: how phase 1 comes to its end: `trained` by gradient until its `stop`, or
            `solved`, as logistic or ridge regression (a linear head of one layer on a vector); the
            options of its steps are then without effect.
        stop: what ends phase 1: the `gap` between train and dev metric, a fixed number of
            `epochs`, or `convergence` of the dev metric. Phase 2 starts from phase 1's best epoch
            by dev, with `gap` from the best of those within its tolerance (the first epoch where
            none is), after a fixed number from the last.
        stack_learning_rate: of phase 1, constant; 1e-3 was the best of five in the paper.
        stack_epochs: epochs of phase 1: exactly so many with `epochs`, otherwise at most.
        gap_tolerance: with `gap`: how far train may lead dev, in the metric's own scale; errors
            without an upper bound need one of their own.
        gap_patience: with `gap`: so many epochs in a row above the tolerance end phase 1.
        patience: with `gap` and `convergence`: so many epochs without a better dev score do.
        learning_rate: peak rate of phase 2.
        layer_decay: of phase 2, as in fine-tuning.
        num_train_epochs: of phase 2.
    """

    rule: ClassVar[TrainingRule] = FINE_TUNING

    first_phase: Literal["trained", "solved"] = "trained"
    stop: Annotated[StopName, Choices(("gap", "epochs", "convergence"))] = "gap"
    stack_learning_rate: Annotated[Rate, Floats(1e-4, 1e-2, log=True)] = 1e-3
    stack_epochs: Annotated[Count, Ints(3, 30, log=True)] = 20
    gap_tolerance: Annotated[Decay, Floats(0.01, 0.1)] = 0.05
    gap_patience: Count = 1
    patience: Count = 3
    learning_rate: LearningRate = FINE_TUNING.learning_rate
    layer_decay: LayerDecay = 1.0
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = FINE_TUNING.usual_epochs
    warmup_ratio: Warmup = 0.1

    def data_defaults(self, facts: TrainingFacts) -> dict[str, Any]:
        """A gap on few dev rows is mostly chance, so the tolerance is two standard errors of it."""
        tolerance = max(self.gap_tolerance, round(1 / math.sqrt(facts.dev_rows), 3))
        return super().data_defaults(facts) | {"gap_tolerance": tolerance}

    def unused_options(self, model: Model) -> frozenset[str]:
        if self.first_phase == "trained":
            return frozenset()
        return frozenset({"stop", "stack_learning_rate", "stack_epochs", "gap_tolerance"})

    def plan(self, model: Model) -> list[Phase]:
        """The two phases.

        Raises:
            ConfigError: if phase 1 is to be solved and the head is none that can be.
        """
        tuning = FineTuning(
            learning_rate=self.learning_rate,
            layer_decay=self.layer_decay,
            weight_decay=self.weight_decay,
            num_train_epochs=self.num_train_epochs,
            warmup_ratio=self.warmup_ratio,
        )
        return [self._stack(model), *tuning.plan(model)]

    def _stack(self, model: Model) -> Phase:
        if self.first_phase == "solved":
            if not model.is_linear_probe:
                reason = model.why_no_linear_probe
                raise ConfigError(f"stack-and-finetune: first_phase=solved: {reason}")
            return solved_head("stack")
        new = new_parts(self.stack_learning_rate, self.weight_decay)
        restore: Literal["last", "best"] = "last" if self.stop == "epochs" else "best"
        return Phase("stack", new, Constant(), self._stop(), restore)

    def _stop(self) -> Stop:
        if self.stop == "epochs":
            return Epochs(self.stack_epochs)
        if self.stop == "convergence":
            return Plateau(self.stack_epochs, self.patience)
        return Gap(self.stack_epochs, self.gap_tolerance, self.gap_patience, self.patience)
