"""What a model says without the adapters of each span of layers, computing what spans share once.

L layers make L (L + 1) / 2 spans first..last. Below `first` a span's states are those of the whole
model. Spans of one `first` share the layers first..last that are computed without adapters: each
goes on from the last one's. Only the layers above `last`, with their adapters, are a span's own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from totune.adapters.adapters import Adapters
from totune.adapters.sharing import Span
from totune.encoders.encoder import Cached
from totune.encoders.mixing import reduce_tokens
from totune.encoders.transformers import TransformersEncoder
from totune.inputs.batches import Batch
from totune.model import Model, Viewed


def removable(encoder: TransformersEncoder) -> list[Span]:
    """Layers whose adapters can be removed alone: those that share weights only together."""
    grouped = groupby(range(1, encoder.depth + 1), key=lambda depth: id(encoder.layer(depth)))
    runs = [list(run) for _, run in grouped]
    return [(run[0], run[-1]) for run in runs]


def spans_of(layers: Sequence[Span]) -> list[Span]:
    """Every continuous span of `layers`, as layers first..last."""
    return [(first, last) for at, (first, _) in enumerate(layers) for _, last in layers[at:]]


def naive_evaluations(depth: int, spans: int) -> int:
    """How many layers are computed if the whole model, and it without each span, run alone."""
    return depth * (spans + 1)


@dataclass
class Walk:
    """Goes through the spans of one model.

    Attributes:
        model: in eval mode.
        adapters: those in its encoder.
        layers: as `removable` gives them.
        batches: how many have been gone through.
        evaluations: how many layers have been computed for them.
    """

    model: Model
    adapters: Adapters
    layers: list[Span]
    batches: int = 0
    evaluations: int = 0

    def outputs(self, batch: Batch) -> Iterator[tuple[Span | None, Tensor]]:
        """Outputs [P, C] with all adapters (None), then without those of each span."""
        depth = self.model.encoder.depth
        self.batches += 1
        whole = self._whole(batch)
        yield None, self._read(whole, batch)
        for at, (first, _) in enumerate(self.layers):
            removed = {below: whole[below] for below in range(first)}
            for start, last in self.layers[at:]:
                with self.adapters.removed(start, last):
                    removed |= self._run(batch, removed[start - 1], start - 1, last)
                above = self._run(batch, removed[last], last, depth)
                yield (first, last), self._read(removed | above, batch)

    def _whole(self, batch: Batch) -> dict[int, Tensor]:
        """States of every block, by depth."""
        depth = self.model.encoder.depth
        self.evaluations += depth
        with self._autocast():
            return dict(enumerate(self.model.encoder.encode(batch).states))

    def _run(self, batch: Batch, states: Tensor, start: int, stop: int) -> dict[int, Tensor]:
        """States of blocks start + 1..stop, by depth, from those of `start`."""
        if start == stop:
            return {}
        self.evaluations += stop - start
        with self._autocast():
            stack = self.model.encoder.encode(batch, Cached(start, states), stop)
        return {depth: stack[depth] for depth in range(start + 1, stop + 1)}

    def _autocast(self) -> torch.autocast:
        bf16 = self.model.precision == "bf16"
        return torch.autocast(self.model.encoder.device.type, torch.bfloat16, enabled=bf16)

    def _read(self, states: dict[int, Tensor], batch: Batch) -> Tensor:
        """Mixing and head over the states of every block."""
        view = self.model.readout.view(self.model.encoder.depth)
        read = [states[depth] for depth in view.depths]  # each [B, T, H]; of the top maybe T = 1
        if view.reduction is not None:
            read = [reduce_tokens(each, batch.attention_mask, view.reduction) for each in read]
        outputs: Tensor = self.model(batch, Viewed(view, torch.stack(read, dim=1)))
        return outputs
