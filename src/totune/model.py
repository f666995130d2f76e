"""Encoder + mixing + head: the only forward path, from pieces or from a cached prefix."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from totune.encoders.encoder import Cached, Encoder
from totune.encoders.kernels import replace_dropout
from totune.encoders.mixing import Mixing, Readout, View
from totune.errors import ConfigError
from totune.heads.base import Head, InputKind, States
from totune.inputs.batches import Batch
from totune.machine import Precision
from totune.modules.recurrent import run_in_bf16
from totune.modules.tokens import Tokens
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression


def wants_of(head: Head, task: Task) -> InputKind:
    """What the head reads for this task.

    Raises:
        ConfigError: if it is not made for the task.
    """
    fitting = [wanted for wanted in head.wants if (wanted == "words") == task.per_word]
    if not fitting:
        does = "labels each word" if task.per_word else "labels whole texts"
        raise ConfigError(
            f"head {head.name!r} reads {' or '.join(head.wants)}: it cannot be used for the task "
            f"{task.name}, which {does}. totune list heads shows what each head is for."
        )
    return fitting[0]


@dataclass(frozen=True)
class Viewed:
    """A batch of cached rows: [B, D, H] of a reduced view, [B, D, T, H] of a token view."""

    view: View
    rows: Tensor


class Model(nn.Module):
    """A text model for one task.

    Args:
        encoder: the pretrained encoder.
        readout: how its states reach the head.
        head: the kind of head and its options.
        task: what is predicted; gives the loss unless the head has its own.
        precision: "bf16" runs the encoder under bfloat16 autocast, and recurrences of the head;
            mixing and the rest of the head are float32.

    Attributes:
        wants: what the head reads.

    Raises:
        ConfigError: if the head is not made for the task; if the readout asks for a pooler that
            the encoder does not have, or does not give what the head reads, or asks for a mix of
            what it concatenates.
    """

    def __init__(
        self,
        encoder: Encoder,
        readout: Readout,
        head: Head,
        task: Task,
        precision: Precision = "fp32",
    ) -> None:
        super().__init__()
        if readout.pooling == "pooler" and encoder.pooler is None:
            raise ConfigError(
                f"pooling=pooler: this {encoder.kind} encoder has no pretrained pooler. "
                "Use pooling=cls or pooling=mean."
            )
        if readout.pooling == "last-four" and readout.layers != "top":
            raise ConfigError(
                f"layers={readout.layers}: pooling=last-four concatenates layers and mixes none. "
                "Use layers=top with it, or another pooling."
            )
        self.wants = wants_of(head, task)
        if (readout.pooling == "none") == self.wants.startswith("pooled"):
            raise ConfigError(
                f"head {head.name!r} reads {self.wants}, which pooling={readout.pooling} does not "
                "give: pooling=auto fits every head; heads that read tokens, pairs or words need "
                "none, the others any but none."
            )
        if readout.first_token_only:
            encoder.read_first_token_only()
        self.encoder = encoder
        self.readout = readout
        self.mixing = Mixing(readout, encoder.depth, encoder.width)
        self.head = head.build(self.mixing.width, task)
        first = task.first_outputs()
        if first is not None:
            self.head.begin_at(torch.from_numpy(first))
        run_in_bf16(self.head, precision == "bf16")
        self.head_options = head
        self.task = task
        self.precision = precision
        self._frozen_depth = -1

    def parts(self) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """The named parts that plans speak of, bottom to top, with their named parameters."""
        parts = {"embeddings": list(self.encoder.block_parameters(0))}
        for depth in range(1, self.encoder.depth + 1):
            parts[f"layer.{depth}"] = list(self.encoder.block_parameters(depth))
        parts["pooler"] = []  # empty, like mixing, where the head does not read it
        if self.readout.pooling == "pooler" and self.encoder.pooler is not None:
            pooler = self.encoder.pooler.named_parameters()
            parts["pooler"] = [(f"pooler.{name}", parameter) for name, parameter in pooler]
        parts["mixing"] = [(f"mixing.{n}", p) for n, p in self.mixing.named_parameters()]
        parts["head"] = [(f"head.{n}", p) for n, p in self.head.named_parameters()]
        return parts

    def unique_parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter of every part once (shared layers appear in several parts), by name."""
        found: dict[str, nn.Parameter] = {}
        seen: set[int] = set()
        for part in self.parts().values():
            for name, parameter in part:
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found[name] = parameter
        return found

    def freeze_prefix(self) -> int:
        """Finds the frozen prefix (from `requires_grad`), fixes it in eval mode, and returns it."""
        self._frozen_depth = self.encoder.frozen_depth()
        return self._frozen_depth

    def prepare_training(self, device: torch.device) -> None:
        """Told before training on `device`, so that faster arithmetic can be chosen for it."""
        self.encoder.prepare_training(device)
        replace_dropout(self.head, device)

    def train(self, mode: bool = True) -> "Model":
        super().train(mode)
        self.encoder.freeze_modes(self._frozen_depth)
        return self

    def view(self, frozen_depth: int) -> View | None:
        """What must be cached of blocks 0..frozen_depth, or None if it would not pay.

        The embeddings alone are cheaper to compute than to read.
        """
        depth = self.encoder.depth
        if frozen_depth < 1:
            return None
        if frozen_depth == depth:
            return self.readout.view(depth)
        below = tuple(d for d in self.readout.depths(depth) if d < frozen_depth)
        return View((*below, frozen_depth))

    @property
    def is_linear_probe(self) -> bool:
        """Whether, over a frozen encoder, what trains is one linear layer on a vector per row.

        With the loss of classification (of several labels too) or regression that is a convex
        problem, unless options of the task change the loss into one that only steps minimise.
        """
        return self.why_no_linear_probe is None

    @property
    def why_no_linear_probe(self) -> str | None:
        """What stands against `is_linear_probe`, with a remedy; None if nothing does."""
        if not isinstance(self.task, Classification | MultiLabel | Regression):
            return f"the task is {self.task.name}, and only labels or a score per text are solved."
        if self.task.gradient_only:
            options = ", ".join(f"task.{option}" for option in self.task.gradient_only)
            return f"the loss of {options} is minimised by steps alone. Leave it out."
        if self.head.linear_layer() is None or self.wants not in ("pooled", "pooled-pair"):
            return (
                f"head {self.head_options.name!r}, as it is set, is not one linear layer on a "
                "vector per text. Use the head linear with head.layers=1."
            )
        if self.mixing.scalar_mix is not None:
            return (
                f"layers={self.readout.layers} learns the weights of a mix. "
                "Use layers=top or layers=mean."
            )
        return None

    def forward(self, batch: Batch, viewed: Viewed | None = None, vectors: bool = False) -> Tensor:
        """Outputs [P, C] of a batch, from its pieces or from cached rows of its prefix.

        With `vectors` it gives what a head of one vector per row reads instead, [B, H].
        """
        states = self.read(batch, viewed)
        outputs: Tensor = states.vectors[0] if vectors else self.head(states)
        return outputs

    def read(self, batch: Batch, viewed: Viewed | None = None) -> States:
        """What the head reads of a batch, from its pieces or from cached rows of its prefix."""
        if viewed is not None and viewed.view.reduction is not None:
            states = self._mix(list(viewed.rows.unbind(1)), batch, reduced=True)
        else:
            states = self._mix(self._layers(batch, viewed), batch, reduced=False)
        return self._states(states, batch)

    def losses(self, outputs: Tensor, batch: Batch) -> Tensor:
        """The loss of each position, [P], from outputs [P, C] and the batch's targets."""
        assert batch.targets is not None, "a loss needs targets"
        own: Tensor | None = self.head.losses(outputs, batch.targets, _counts(outputs, batch))
        return self.task.losses(outputs, batch.targets) if own is None else own

    def best(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Outputs [P, C] of which the largest of each position is the prediction."""
        found: Tensor = self.head.best(outputs, _counts(outputs, batch))
        return found

    def _states(self, states: Tensor, batch: Batch) -> States:
        """What the head wants of the mixed states [B, T, H], or of vectors [B, H]."""
        if self.wants == "pooled":
            return States(vectors=(states,))
        if self.wants == "pooled-pair":
            return States(vectors=(states[0::2], states[1::2]))
        if self.wants == "tokens":
            return States(tokens=(Tokens(states, batch.attention_mask.bool()),))
        flat = states.flatten(0, 1)  # [B * T, H]
        sides = tuple(Tokens(flat[side.at], side.mask) for side in batch.sides)
        return States(tokens=sides, words=batch.words)

    def _layers(self, batch: Batch, viewed: Viewed | None) -> list[Tensor]:
        """Outputs [B, T, H] of the blocks that the readout reads."""
        known: dict[int, Tensor] = {}
        start = None
        if viewed is not None:
            known = dict(zip(viewed.view.depths, viewed.rows.unbind(1), strict=True))
            deepest = viewed.view.depths[-1]
            start = Cached(deepest, known[deepest])
        if start is None or start.depth < self.encoder.depth:
            with self._autocast():
                stack = self.encoder.encode(batch, start)
            known |= {d: stack[d] for d in range(stack.first, stack.last + 1)}
        return [known[depth] for depth in self.mixing.depths]

    def _mix(self, layers: Sequence[Tensor], batch: Batch, reduced: bool) -> Tensor:
        states: Tensor = self.mixing(layers, batch.attention_mask, self.encoder.pooler, reduced)
        return states

    def _autocast(self) -> AbstractContextManager[object]:
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.encoder.device.type, torch.bfloat16)


def _counts(outputs: Tensor, batch: Batch) -> Tensor:
    """How many of the outputs [P, C] belong to each row."""
    if batch.words is not None:
        return batch.words.counts
    return torch.ones(len(outputs), dtype=torch.int64, device=outputs.device)
