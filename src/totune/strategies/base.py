"""What every strategy is: options as a frozen dataclass, modules to insert, a plan of phases."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Layers, Pooling, Readout
from totune.model import Model
from totune.registry import Registry
from totune.sequence_classifier import usual_head, usual_pooling
from totune.strategies.phases import Phase

# Checked where a member is made from its options by name.
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Strategy(ABC):
    """A way of adapting an encoder to a task.

    Attributes:
        layers: what the head reads: the `top` layer or a learned `scalar-mix` of all.
        pooling: how tokens become one vector; `auto` is what the type's own sentence head reads:
            the pretrained pooler, or the first token under a head of two layers.
    """

    name: ClassVar[str]

    layers: Layers = "top"
    pooling: Literal[Pooling, "auto"] = "auto"

    @property
    def label(self) -> str:
        """The name that a study compares this strategy under."""
        return self.name

    def readout(self, encoder: Encoder) -> Readout:
        """How the head reads `encoder`."""
        return Readout(
            self.layers, usual_pooling(encoder) if self.pooling == "auto" else self.pooling
        )

    def head_defaults(self, encoder: Encoder) -> dict[str, Any]:
        """Options of the linear head that suit this strategy, where the user names none."""
        return usual_head(encoder) if self.pooling == "auto" else {}

    def prepare(self, model: Model) -> None:  # noqa: B027 - most strategies insert nothing
        """Inserts this strategy's modules into the model."""

    @abstractmethod
    def plan(self, model: Model) -> list[Phase]:
        """The phases, from the model's shape alone: trains nothing, changes nothing."""


STRATEGIES: Registry[Strategy] = Registry("strategy", "totune.strategies")
