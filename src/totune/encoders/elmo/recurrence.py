"""The recurrence of an LSTM whose memory and output are clipped (Peters et al. 2018; bilm).

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of  W_x x_t + W_h h_(t-1) + b
    c_t = clip(f * c_(t-1) + i * g)
    h_t = clip(W_p (o * tanh(c_t)))

Both directions run in the same products, over tokens in the order of `Steps`. Gradients are written
out: a step then keeps its gates and its memory alone, and the gradient of each weight is one
product over all steps, where autograd would add a matrix as large as the weight per step.

Shapes: N tokens, B sequences, P output, D memory; a leading 2 for the directions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Weights(NamedTuple):
    """Gates stand in the order input, forget, candidate, output.

    Attributes:
        input: W_x, [2, 4D, P].
        hidden: W_h, [2, 4D, P].
        bias: b, [2, 4D].
        projection: W_p, [2, P, D].
    """

    input: Tensor
    hidden: Tensor
    bias: Tensor
    projection: Tensor


class State(NamedTuple):
    """Between two steps: output [2, B, P] and memory [2, B, D], the longest sequence first."""

    output: Tensor
    memory: Tensor


class Rule(NamedTuple):
    """How a recurrence runs: `Steps.sizes`, and the largest magnitudes, infinite for no clip."""

    sizes: tuple[int, ...]
    cell_clip: float
    projection_clip: float

    def slices(self) -> list[slice]:
        """The tokens of each step among all N."""
        ends = torch.tensor(self.sizes).cumsum(0).tolist()
        return [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]


def clipped_lstm(
    tokens: Tensor, state: State, weights: Weights, rule: Rule
) -> tuple[Tensor, State]:
    """Outputs [2, N, P] of tokens [2, N, P], and the state after each sequence's last token.

    Autocast must be off: what is repeated over a sentence is computed as precisely as it is stored.
    """
    outputs, output, memory = _ClippedLstm.apply(  # type: ignore[no-untyped-call]
        tokens, *state, *weights, rule
    )
    return outputs, State(output, memory)


class _ClippedLstm(torch.autograd.Function):
    """`clipped_lstm`; forward keeps what `_Backward` reads."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        output, memory = (start.clone() for start in inputs[:2])
        weights, rule = Weights(*inputs[2:6]), inputs[6]
        gates = torch.baddbmm(weights.bias.unsqueeze(1), tokens, weights.input.mT)  # [2, N, 4D]
        outputs = torch.empty_like(tokens)
        memories = gates.new_empty(*gates.shape[:2], memory.shape[-1])  # [2, N, D]
        for at, size in zip(rule.slices(), rule.sizes, strict=True):
            # `baddbmm` into a part of a tensor would compute aside and copy.
            own = gates[:, at].add_(output[:, :size] @ weights.hidden.mT)
            cell = _remember(own, memory[:, :size]).clamp_(-rule.cell_clip, rule.cell_clip)
            out = own.chunk(4, dim=-1)[3] * cell.tanh()
            new = (out @ weights.projection.mT).clamp_(-rule.projection_clip, rule.projection_clip)
            outputs[:, at] = output[:, :size] = new
            memories[:, at] = memory[:, :size] = cell
        ctx.rule = rule
        ctx.save_for_backward(tokens, *inputs[:6], gates, outputs, memories)
        return outputs, output, memory

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(gradients[0].device.type, enabled=False):
            return _gradients(ctx, *gradients)


def _remember(gates: Tensor, memory: Tensor) -> Tensor:
    """The new memory before it is clipped; turns sums [2, B, 4D] into gates in place."""
    admit, forget, candidate, emit = gates.chunk(4, dim=-1)
    for gate in (admit, forget, emit):
        gate.sigmoid_()
    candidate.tanh_()
    return torch.addcmul(forget * memory, admit, candidate)


def _gradients(
    ctx: Any, outputs_gradient: Tensor, output_gradient: Tensor, memory_gradient: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of everything that `_ClippedLstm.forward` is given."""
    rule: Rule = ctx.rule
    tokens, first_output, first_memory, *rest = ctx.saved_tensors
    weights, (gates, outputs, memories) = Weights(*rest[:4]), rest[4:]
    before = _before(outputs, first_output, rule), _before(memories, first_memory, rule)
    output, memory = output_gradient.clone(), memory_gradient.clone()
    sums = torch.empty_like(gates)  # of the gates before their functions
    projected = torch.empty_like(outputs)  # of outputs before they are clipped
    steps = list(zip(rule.slices(), rule.sizes, strict=True))
    for at, size in reversed(steps):
        through = outputs[:, at].abs() < rule.projection_clip
        projected[:, at] = (outputs_gradient[:, at] + output[:, :size]) * through
        emitted = projected[:, at] @ weights.projection  # [2, size, D]
        cell = memories[:, at]
        memory[:, :size] = _step_back(
            gates[:, at], cell, before[1][:, at], emitted, memory[:, :size], sums[:, at], rule
        )
        output[:, :size] = sums[:, at] @ weights.hidden
    emitted_values = gates.chunk(4, dim=-1)[3] * memories.tanh()
    wanted = ctx.needs_input_grad
    return (
        sums @ weights.input if wanted[0] else None,
        output,
        memory,
        sums.mT @ tokens if wanted[3] else None,
        sums.mT @ before[0] if wanted[4] else None,
        sums.sum(dim=1) if wanted[5] else None,
        projected.mT @ emitted_values if wanted[6] else None,
        None,
    )


def _step_back(
    gates: Tensor,
    cell: Tensor,
    before: Tensor,
    emitted: Tensor,
    later: Tensor,
    sums: Tensor,
    rule: Rule,
) -> Tensor:
    """One step's gradients, each [2, size, D or 4D].

    Args:
        gates: the step's.
        cell: its memory, clipped.
        before: the memory it started with.
        emitted: the gradient of what is projected, o * tanh(c).
        later: the gradient of its memory from the next step.
        sums: where the gradients of the gates before their functions are written.
        rule: for its clip.

    Returns:
        The gradient of `before`.
    """
    admit, forget, candidate, emit = gates.chunk(4, dim=-1)
    squashed = cell.tanh()
    gradient = later + emitted * emit * (1 - squashed * squashed)
    gradient *= cell.abs() < rule.cell_clip
    parts = sums.chunk(4, dim=-1)
    torch.mul(gradient * candidate, admit * (1 - admit), out=parts[0])
    torch.mul(gradient * before, forget * (1 - forget), out=parts[1])
    torch.mul(gradient * admit, 1 - candidate * candidate, out=parts[2])
    torch.mul(emitted * squashed, emit * (1 - emit), out=parts[3])
    return gradient * forget


def _before(values: Tensor, first: Tensor, rule: Rule) -> Tensor:
    """What each token's step started with, [2, N, ...]: the step before's value, or `first`."""
    return torch.cat(list(_shifted(values, first, rule)), dim=1)


def _shifted(values: Tensor, first: Tensor, rule: Rule) -> Iterator[Tensor]:
    yield first[:, : rule.sizes[0]]
    for at, size in zip(rule.slices(), rule.sizes[1:], strict=False):
        yield values[:, at][:, :size]
