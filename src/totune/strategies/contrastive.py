"""Contrastive tuning: vectors of one class come together, then logistic regression reads them.

SetFit (Tunstall et al. 2022, "Efficient few-shot learning without prompts", section 3) draws pairs
of texts, learns that the cosine of a pair is 1 where the labels are the same and 0 where they are
not, and fits logistic regression on the tuned vectors. Here the pairs are all those within a batch:
B texts are encoded once for B (B - 1) / 2 pairs, where drawn pairs cost two texts each. So the
number of pairs follows from rows, epochs and batch size: N rows give about N (B - 1) / 2 an epoch.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Pooling
from totune.errors import ConfigError
from totune.heads.base import InputKind
from totune.model import Model
from totune.strategies.base import (
    STRATEGIES,
    LearningRate,
    Strategy,
    TrainEpochs,
    Warmup,
    WeightDecay,
)
from totune.strategies.defaults import CONTRASTIVE, TrainingRule
from totune.strategies.phases import (
    COMPUTED_HEAD,
    Epochs,
    Group,
    LinearDecay,
    Phase,
    solved_head,
)
from totune.tasks.classification import Classification


@STRATEGIES.register("contrastive")
@dataclass(frozen=True)
class Contrastive(Strategy):
    """Trains the encoder on pairs of rows of same and different labels, then solves the head.

    For classes, under the linear head of one layer; scores and tags are refused. Two texts in one
    input are a row like any other. The pairs are all those within a batch, so their number follows
    from rows, epochs and batch size. While pairs are learnt from, dev scores are those of the
    nearest class mean. Not compared by default: docs/defaults.md says what was measured.

    Attributes:
        pooling: how tokens become the vector that is compared; `auto` is their mean.
        learning_rate: peak rate of the encoder.
        num_train_epochs: epochs of pairs.
    """

    rule: ClassVar[TrainingRule] = CONTRASTIVE

    learning_rate: LearningRate = CONTRASTIVE.learning_rate
    weight_decay: WeightDecay = 0.01
    num_train_epochs: TrainEpochs = CONTRASTIVE.usual_epochs
    warmup_ratio: Warmup = 0.1

    def usual_pooling(self, encoder: Encoder) -> Pooling:
        return "mean"

    def head_defaults(self, encoder: Encoder, wants: InputKind = "pooled") -> dict[str, Any]:
        return {}

    def unused_options(self, model: Model) -> frozenset[str]:
        return frozenset({"head.dropout"})

    def plan(self, model: Model) -> list[Phase]:
        """The two phases.

        Raises:
            ConfigError: if labels are no classes of whole texts, or the head cannot be solved or
                reads two texts apart.
        """
        self._check(model)
        rates = self.learning_rate, self.weight_decay
        encoder = tuple(Group(part, *rates) for part in ("pooler", "layer.*", "embeddings"))
        schedule, stop = LinearDecay(self.warmup_ratio), Epochs(self.num_train_epochs)
        pairs = Phase("pairs", (*encoder, COMPUTED_HEAD), schedule, stop, objective="pairs")
        return [pairs, solved_head()]

    def _check(self, model: Model) -> None:
        if not isinstance(model.task, Classification):
            raise ConfigError(
                f"contrastive learns from pairs of the same class and of different ones, and the "
                f"task {model.task.name} has no classes of texts. Leave this strategy out."
            )
        if not model.is_linear_probe:
            raise ConfigError(f"contrastive ends with a solved head: {model.why_no_linear_probe}")
        if model.wants == "pooled-pair":
            raise ConfigError(
                f"contrastive compares one vector per row, and head {model.head_options.name!r} "
                "reads two. Use the head linear, which reads both texts in one input."
            )
