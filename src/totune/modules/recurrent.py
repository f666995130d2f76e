"""Bidirectional LSTMs over padded sequences, exact whatever the padding.

PyTorch's own way to ignore padding, packed sequences, takes twice as long on a processor as two
plain LSTMs of which one reads every sequence reversed within its own length.
"""

import torch
from torch import Tensor, nn

from totune.modules.tokens import Tokens


class BiLstm(nn.Module):
    """A stack of bidirectional LSTM layers, each sequence run from zero state over its own length.

    Args:
        input_size: H.
        hidden_size: of each direction.
        num_layers: each reads both directions of the one below.
        dropout: on the input of every layer but the first.

    Attributes:
        bf16: whether the recurrences run in bfloat16, which some processors do twice as fast.
        width: of the output, 2 * hidden_size.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.bf16 = False
        self.width = 2 * hidden_size
        sizes = [input_size] + [self.width] * (num_layers - 1)
        self.ahead = nn.ModuleList(nn.LSTM(s, hidden_size, batch_first=True) for s in sizes)
        self.back = nn.ModuleList(nn.LSTM(s, hidden_size, batch_first=True) for s in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tokens) -> Tensor:
        """[B, T, H] -> [B, T, 2 * hidden_size]: forward and backward states, zeros on padding."""
        places = torch.arange(tokens.mask.shape[1], device=tokens.mask.device)  # [T]
        lengths = tokens.lengths.unsqueeze(1)  # [B, 1]
        reverse = torch.where(places < lengths, lengths - 1 - places, places)  # [B, T]
        states = tokens.zeroed()
        device = states.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.bf16):
            for layer, (ahead, back) in enumerate(zip(self.ahead, self.back, strict=True)):
                if layer:
                    states = self.dropout(states)
                forth = ahead(states)[0]  # [B, T, hidden]
                reversed_states = back(_at(states, reverse))[0]
                states = torch.cat([forth, _at(reversed_states, reverse)], dim=-1)
        return Tokens(states.to(tokens.states.dtype), tokens.mask).zeroed()


def run_in_bf16(module: nn.Module, enabled: bool) -> None:
    """Sets the precision of every recurrence inside `module`."""
    for part in module.modules():
        if isinstance(part, BiLstm):
            part.bf16 = enabled


def _at(states: Tensor, places: Tensor) -> Tensor:
    """states[b, places[b, t]]: [B, T, H] and [B, T] -> [B, T, H]."""
    return states.gather(1, places.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
