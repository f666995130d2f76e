"""A model that is still to be built: strategy, head, task and encoder, checked against each other.

Everything that builds a model goes through here: runs, searches, reopened studies and
`totune plan`. Checking plans the phases on a copy whose parameters have shapes and no values, so
it costs neither the memory nor the time of copying an encoder.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch

from totune.encoders.encoder import Encoder
from totune.errors import ConfigError
from totune.heads.base import HEADS, Head, InputKind
from totune.inputs.encoded import EncodingOptions
from totune.machine import Precision
from totune.model import Model, wants_of
from totune.registry import options_of
from totune.runs.config import Candidate
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.defaults import TrainingFacts
from totune.strategies.phases import Phase
from totune.tasks.base import Task


@dataclass(frozen=True)
class ModelSpec:
    """What a model is made of.

    Attributes:
        strategy: with all its options.
        head: the task network, with all its options.
        task: what is predicted.
        encoder: the pretrained one; models are built on copies of it.
        precision: of the encoder's arithmetic.
        max_length: longest input in word pieces that the model must have room for.
        has_pairs: whether the rows have two texts; None where there is no data yet.
    """

    strategy: Strategy
    head: Head
    task: Task
    encoder: Encoder
    precision: Precision = "fp32"
    max_length: int = 0
    has_pairs: bool | None = None

    @classmethod
    def of_candidate(
        cls, candidate: Candidate, facts: TrainingFacts, task: Task, encoder: Encoder, **more: Any
    ) -> "ModelSpec":
        """From a candidate's options: those that nobody set follow from `facts` and `encoder`.

        Raises:
            ConfigError: if an option is wrong, or the head is not made for the task.
        """
        strategy = candidate.create(facts)
        assert isinstance(strategy, Strategy)
        reads = wants_of(candidate.create_head({}), task)
        head = candidate.create_head(strategy.head_defaults(encoder, reads))
        return cls(strategy, head, task, encoder, **more)

    @property
    def input_kind(self) -> InputKind:
        """What the head reads for this task."""
        return wants_of(self.head, self.task)

    @property
    def encoding_options(self) -> EncodingOptions:
        """How rows become encoder inputs."""
        return self.strategy.encoding_options(self.encoder, self.input_kind)

    def hollow_model(self) -> Model:
        """The model without values.

        Raises:
            ConfigError: if head, task, data and encoder do not fit each other.
        """
        with torch.device("meta"):
            return self._assemble(hollow_copy(self.encoder))

    def check(self) -> tuple[Model, list[Phase]]:
        """The model without values, and its plan.

        Raises:
            ConfigError: if head, task, data, encoder and strategy do not fit each other.
        """
        model = self.hollow_model()
        return model, self.strategy.plan(model)

    def build(self, seed: int) -> tuple[Model, list[Phase]]:
        """A model of its own with freshly initialised new parts, and its plan.

        Args:
            seed: of the initialisation; training continues the same random numbers.

        Raises:
            ConfigError: as `check`.
        """
        torch.manual_seed(seed)
        model = self._assemble(copy.deepcopy(self.encoder))
        return model, self.strategy.plan(model)

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Strategy and head with all their options, as a run's configuration keeps them."""
        return (
            {"name": self.strategy.name, "options": options_of(self.strategy)},
            {"name": self.head.name, "options": options_of(self.head)},
        )

    def _assemble(self, encoder: Encoder) -> Model:
        self._check_pairs()
        readout = self.strategy.readout(encoder, self.input_kind)
        model = Model(encoder, readout, self.head, self.task, self.precision)
        self.strategy.prepare(model)
        room = model.encoder.max_length
        if room < self.max_length:  # prefixes take places of their own
            raise ConfigError(
                f"{self.strategy.label}: beside what it inserts, the encoder has room for {room} "
                f"word pieces, and inputs may have {self.max_length}. Use `max_length={room}`."
            )
        return model

    def _check_pairs(self) -> None:
        """Refuses heads for pairs on single texts, and encodings of pairs that a head cannot read.

        Raises:
            ConfigError: with the remedy.
        """
        reads_pairs = self.input_kind in ("pair", "pooled-pair")
        if reads_pairs and self.has_pairs is False:
            raise ConfigError(
                f"head {self.head.name!r} compares two texts, and this data has one per row: name "
                "the second with `pair`, or use another head."
            )
        encoding = self.encoding_options.pair_encoding
        if self.input_kind == "pooled-pair" and encoding == "joint":
            raise ConfigError(
                f"pair_encoding=joint: head {self.head.name!r} compares vectors of texts that were "
                "encoded apart. Leave pair_encoding out, or use another head."
            )
        if self.has_pairs and not reads_pairs and encoding == "separate":
            raise ConfigError(
                f"pair_encoding=separate: head {self.head.name!r} reads one text and would see "
                "half of each pair. Use pair_encoding=joint, or a head for pairs."
            )


def strategy_of(config: dict[str, Any]) -> Strategy:
    """The strategy that a run's configuration names, `{name, options}`."""
    return STRATEGIES.create(config["name"], config["options"])


def head_of(config: dict[str, Any]) -> Head:
    """The head that a run's configuration names, `{name, options}`."""
    return HEADS.create(config["name"], config["options"])


def hollow_copy(encoder: Encoder) -> Encoder:
    """A copy on the meta device: every shape, shared weights shared, and no values."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    memo = {id(tensor): _hollow(tensor) for tensor in tensors}
    return copy.deepcopy(encoder, memo)


def _hollow(tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty_like(tensor, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, tensor.requires_grad)
    return empty
