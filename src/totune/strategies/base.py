"""What every strategy is: options as a frozen dataclass, modules to insert, a plan of phases."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Layers, Pooling, Readout
from totune.heads.base import InputKind
from totune.inputs.encoded import EncodingOptions, PairEncoding
from totune.model import Model
from totune.ranges import Floats, Times
from totune.registry import Member, Registry
from totune.sequence_classifier import usual_head, usual_pooling
from totune.strategies.defaults import TrainingFacts, TrainingRule
from totune.strategies.phases import Phase

# Checked where a member is made from its options by name.
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Ratio = Annotated[float, Field(ge=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

# Where a search looks. Peters et al. 2019 (A) tuned rates, dropout, weight decay and epochs; their
# paper gives no ranges.
LearningRate = Annotated[Rate, Times(0.2, 5.0)]
LayerDecay = Annotated[Rate, Floats(0.4, 1.0)]
WeightDecay = Annotated[Decay, Floats(1e-4, 0.1, log=True)]
Warmup = Annotated[Share, Floats(0.0, 0.2)]
TrainEpochs = Annotated[Count, Times(0.5, 2.0)]


@dataclass(frozen=True)
class Strategy(Member, ABC):
    """A way of adapting an encoder to a task.

    Attributes:
        layers: what the head reads: the `top` layer, the `mean` of all, a learned `scalar-mix` of
            all, or a `normed-scalar-mix` of layers that are normed first, over the whole batch:
            then a prediction depends on the rows beside it. `auto` is what suits the strategy.
        pooling: how tokens become one vector, for heads that read one; `auto` is what the type's
            own sentence head reads: the pretrained pooler, or the first token under a head of two
            layers.
        pair_encoding: both texts of a pair in one input (`joint`), or each alone (`separate`), for
            heads that read two texts; `auto` is joint unless the head reads two vectors, or the
            encoder whole words (Peters et al. 2019, A.1: BERT and ELMo).
        document_context: whether sentences whose words are tagged are encoded together with the
            sentences around them, where documents are known; `auto` unless the encoder reads whole
            words (there too).
    """

    name: ClassVar[str]
    rule: ClassVar[TrainingRule | None] = None

    layers: Literal[Layers, "auto"] = "top"
    pooling: Literal[Pooling, "auto"] = "auto"
    pair_encoding: Literal[PairEncoding, "auto"] = "auto"
    document_context: bool | Literal["auto"] = "auto"

    @property
    def label(self) -> str:
        """The name that a study compares this strategy under."""
        return self.name

    def encoding_options(self, encoder: Encoder, wants: InputKind) -> EncodingOptions:
        """How rows become inputs of `encoder` under a head that reads `wants`."""
        pairs, context = self.pair_encoding, self.document_context
        if pairs == "auto":
            apart = wants == "pooled-pair" or (wants == "pair" and encoder.reads_words)
            pairs = "separate" if apart else "joint"
        return EncodingOptions(pairs, not encoder.reads_words if context == "auto" else context)

    def readout(self, encoder: Encoder, wants: InputKind = "pooled") -> Readout:
        """How a head that reads `wants` reads `encoder`."""
        layers = self.usual_layers(wants) if self.layers == "auto" else self.layers
        if self.pooling != "auto":
            return Readout(layers, self.pooling)
        pooled = wants.startswith("pooled")
        return Readout(layers, self.usual_pooling(encoder) if pooled else "none")

    def usual_layers(self, wants: InputKind) -> Layers:
        """The layers that `auto` stands for, under a head that reads `wants`."""
        return "top"

    def usual_pooling(self, encoder: Encoder) -> Pooling:
        """The pooling that `auto` stands for."""
        return usual_pooling(encoder)

    def head_defaults(self, encoder: Encoder, wants: InputKind = "pooled") -> dict[str, Any]:
        """Options of the linear head that suit this strategy, where the user names none."""
        return usual_head(encoder) if self.pooling == "auto" and wants == "pooled" else {}

    def data_defaults(self, facts: TrainingFacts) -> dict[str, Any]:
        """Options that follow from data and encoder, where the user names none."""
        return {} if self.rule is None else self.rule.options(facts)

    def unused_options(self, model: Model) -> frozenset[str]:
        """Options that change nothing for this model, as `NAME` or `head.NAME`: not searched."""
        return frozenset()

    def prepare(self, model: Model) -> None:
        """Inserts this strategy's modules into the model."""

    def preparation(self, model: Model) -> str:
        """What `prepare` changes without leaving a trace in the plan, in a sentence; or ""."""
        return ""

    @abstractmethod
    def plan(self, model: Model) -> list[Phase]:
        """The phases, from the model's shape alone: trains nothing, changes nothing."""


STRATEGIES: Registry[Strategy] = Registry("strategy", "totune.strategies")
