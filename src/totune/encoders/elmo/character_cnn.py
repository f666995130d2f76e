"""From the characters of a word to its vector (Peters et al. 2018, 3.2; Kim et al. 2016).

Shapes: W words, C characters of each, E size of a character's vector, F features, P projection.
"""

import torch
from torch import Tensor, nn

from totune.encoders.elmo.characters import CHARACTERS
from totune.encoders.elmo.options import ElmoOptions

_INITIAL_CARRY = -2.0  # gates start closed: a word passes as it is


class CharacterCnn(nn.Module):
    """Convolutions over a word's characters, their maximum over places, highways, projection.

    There is no projection where the convolutions already make a vector of its size, as in the
    official programs.

    Args:
        options: the sizes.
    """

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        size, features = options.character_size, options.features
        self.characters = nn.Embedding(CHARACTERS, size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, count, width) for width, count in options.filters
        )
        self.highways = nn.ModuleList(Highway(features) for _ in range(options.highway_layers))
        projected = features != options.projection_size
        self.projection = nn.Linear(features, options.projection_size) if projected else None
        self._activation = torch.tanh if options.activation == "tanh" else torch.relu
        self._widest = max(width for width, _ in options.filters)

    def forward(self, characters: Tensor) -> Tensor:
        """Characters [W, C] from 1 to 261, on the processor -> vectors [W, P]."""
        device = self.characters.weight.device
        codes = self._without_fill(characters).to(device, torch.int64) - 1
        letters = self.characters(codes).transpose(1, 2)  # [W, E, C]
        # The activations rise, so that the maximum may be taken first.
        found = [self._activation(layer(letters).amax(dim=2)) for layer in self.convolutions]
        states = torch.cat(found, dim=1)  # [W, F]
        for highway in self.highways:
            states = highway(states)
        return states if self.projection is None else self.projection(states)

    def _without_fill(self, characters: Tensor) -> Tensor:
        """The characters without redundant places: windows of padding are all alike."""
        used = (characters != CHARACTERS).sum(dim=1).max() + self._widest
        return characters[:, : int(used)]


class Highway(nn.Module):
    """A layer that a gate opens to: g * relu(W h + b) + (1 - g) * h (Srivastava et al. 2015)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)
        nn.init.constant_(self.gate.bias, _INITIAL_CARRY)

    def forward(self, states: Tensor) -> Tensor:
        """[W, F] -> [W, F]."""
        transformed = torch.relu(self.transform(states))
        return torch.lerp(states, transformed, torch.sigmoid(self.gate(states)))
