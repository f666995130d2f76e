"""Runs a frozen prefix over a whole split, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import View, reduce_tokens
from totune.features.rows import Features, RowLayout
from totune.inputs.batches import in_halves, ordered_batches
from totune.inputs.encodings import Encodings
from totune.progress import Progress

Put = Callable[[int, np.ndarray], None]

# Word pieces per batch, padding included. 2048 was the fastest of 1024..8192 for MiniLM on a
# processor (float32 and bfloat16); accelerators need more to be busy.
TOKENS_ON_CPU = 2048
TOKENS_ON_ACCELERATOR = 16_384


@dataclass(frozen=True)
class Computation:
    """What is to be computed: `view` of `encoder` over `pieces`.

    Attributes:
        bf16: whether the encoder runs under bfloat16 autocast.
        layout: where each row goes.
        description: what the data is called in messages.
    """

    encoder: Encoder
    pieces: Encodings
    view: View
    bf16: bool
    layout: RowLayout
    description: str

    def numbers(self, progress: Progress) -> np.ndarray:
        """The whole view in memory, flat."""
        numbers = np.empty(self.layout.count, dtype=self.layout.numpy_dtype)

        def put(start: int, values: np.ndarray) -> None:
            numbers[start : start + values.size] = values.reshape(-1)

        self.fill(put, progress)
        return numbers

    def fill(self, put: Put, progress: Progress) -> None:
        """Hands every row to `put`: its start in the layout and its numbers, [D, T_i, H].

        Raises:
            RunError: if a single row does not fit into memory; batches that do not are halved.
        """
        on_cpu = self.encoder.device.type == "cpu"
        tokens = TOKENS_ON_CPU if on_cpu else TOKENS_ON_ACCELERATOR
        batches = ordered_batches(self.pieces.lengths, tokens, tokens)
        title = f"Computing features of {self.description}"
        # Not inference mode: a tensor that a module keeps for later (rotary tables, say) would be
        # unusable in training.
        bar_shown = progress.bar(title, len(self.pieces))
        with evaluating(self.encoder), torch.no_grad(), bar_shown as bar:

            def hand_over(indices: np.ndarray) -> None:
                states = self._states(indices)  # [B, D, T or 1, H]
                for row, values in zip(indices, states, strict=True):
                    length = self.layout.bounds[row + 1] - self.layout.bounds[row]
                    put(self.layout.start(row), np.ascontiguousarray(values[:, :length]))
                bar.advance(len(indices))

            in_halves(batches, hand_over, self.pieces.lengths, progress.say)

    def _states(self, indices: np.ndarray) -> np.ndarray:
        device, depths = self.encoder.device, self.view.depths
        batch = self.pieces.batch(indices).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.bf16):
            stack = self.encoder.encode(batch, stop=max(depths))
        kept = [self._reduce(stack[depth], batch.attention_mask) for depth in depths]
        states = torch.stack(kept, dim=1).to(self.layout.dtype).cpu()  # [B, D, T or 1, H]
        array: np.ndarray = states.view(torch.int16 if self.bf16_stored else states.dtype).numpy()
        return array

    @property
    def bf16_stored(self) -> bool:
        return self.layout.dtype == torch.bfloat16

    def _reduce(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        if self.view.reduction is None:
            return states
        return reduce_tokens(states.float(), attention_mask, self.view.reduction).unsqueeze(1)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Eval mode inside the block; every submodule's own mode after it."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def compute(encoder: Encoder, pieces: Encodings, view: View, bf16: bool) -> Features:
    """A view in memory, without a cache: for texts that are seen once."""
    layout = RowLayout.of(pieces, view, encoder.width, bf16)
    job = Computation(encoder, pieces, view, bf16, layout, f"{len(pieces)} examples")
    return Features(view, layout, job.numbers(Progress()))
