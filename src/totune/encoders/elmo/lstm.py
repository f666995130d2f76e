"""One layer of the language model: a direction reads words forward, the other backward.

Shapes: N tokens, B sequences, P output, D memory; a leading 2 for the directions.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from totune.encoders.elmo.recurrence import Rule, State, Weights, clipped_lstm


class ElmoLayer(nn.Module):
    """Two LSTMs with a projected output, which know nothing of each other.

    Without clips they compute what `nn.LSTM(proj_size=...)` does; on a processor its kernels take
    longer to train than ours, so they are not used even then.

    Their parameters are stacked, forward first, gates in the order input, forget, candidate,
    output. The bias of the forget gate holds the 1 that the official programs add to it.

    Args:
        projection_size: P, of tokens and outputs.
        cell_size: D.
        cell_clip: the largest magnitude in a memory cell; None for no limit.
        projection_clip: likewise in an output, which the next step reads.
        residual: whether the layer gives the sum of its output and its input; the recurrence reads
            the output alone.
    """

    def __init__(
        self,
        projection_size: int,
        cell_size: int,
        cell_clip: float | None,
        projection_clip: float | None,
        residual: bool,
    ) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(2, 4 * cell_size, projection_size))
        self.hidden_weight = nn.Parameter(torch.empty(2, 4 * cell_size, projection_size))
        self.bias = nn.Parameter(torch.empty(2, 4 * cell_size))
        self.projection_weight = nn.Parameter(torch.empty(2, projection_size, cell_size))
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.residual = residual
        self._reset()

    def forward(
        self, tokens: Tensor, sizes: Sequence[int], state: State | None = None
    ) -> tuple[Tensor, State]:
        """What the layer makes of tokens [2, N, P] in the order of `Steps`.

        Args:
            tokens: float32, or whatever the weights are; autocast is off inside.
            sizes: sequences that still run at each step.
            state: to start from; zeros by default.

        Returns:
            The layer's output [2, N, P], and the state after each sequence's last token.
        """
        start = self._zeros(sizes[0]) if state is None else state
        with torch.autocast(tokens.device.type, enabled=False):
            outputs, end = self._run(tokens.to(self.bias.dtype), tuple(sizes), start)
            return outputs + tokens if self.residual else outputs, end

    def _run(self, tokens: Tensor, sizes: tuple[int, ...], start: State) -> tuple[Tensor, State]:
        weights = Weights(self.input_weight, self.hidden_weight, self.bias, self.projection_weight)
        rule = Rule(sizes, self.cell_clip or math.inf, self.projection_clip or math.inf)
        return clipped_lstm(tokens, start, weights, rule)

    def _zeros(self, rows: int) -> State:
        _, projection_size, cell_size = self.projection_weight.shape
        new = self.bias.new_zeros
        return State(new(2, rows, projection_size), new(2, rows, cell_size))

    def _reset(self) -> None:
        """As PyTorch's LSTM starts, with forget gates that start open."""
        cell_size = self.projection_weight.shape[-1]
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(cell_size), 1 / math.sqrt(cell_size))
        with torch.no_grad():
            self.bias[:, cell_size : 2 * cell_size] += 1
