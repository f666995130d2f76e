"""One direction of Flair's language models (Akbik et al. 2018, section 2.1).

Shapes: B texts, C characters of each, E size of a character's vector, D of a state, A characters
that the model knows.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class LanguageModel(nn.Module):
    """Predicts each next character of a text; a text begins with a newline.

    Names are those of Flair. The decoder is there to measure the model, so it does not train.

    A model for the other direction is the same, and reads texts from their end.

    Args:
        characters: A.
        embedding_size: E.
        hidden_size: D.
    """

    def __init__(self, characters: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(characters, embedding_size)
        self.rnn = nn.LSTM(embedding_size, hidden_size, batch_first=True)
        self.decoder = Decoder(hidden_size, characters)

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, C, A] of each next character, and states [B, C, D], of characters [B, C]."""
        states = self.states(self.encoder(codes))
        return self.decoder(states), states

    def states(self, letters: Tensor) -> Tensor:
        """The state after each character, [B, C, D], of characters' vectors [B, C, E].

        What follows a character leaves its state alone, so padding behind a text needs no care.
        Under autocast, the recurrence runs in its precision; states are as precise as the weights.
        """
        self.rnn.flatten_parameters()  # copies are scattered, which cuDNN warns of
        states: Tensor = self.rnn(letters)[0]
        return states.to(letters.dtype)

    @torch.no_grad()
    def bits(self, codes: Tensor) -> float:
        """Bits per character of one text [C], its first character (the newline) given."""
        logits, _ = self(codes[None, :-1])
        return functional.cross_entropy(logits[0].float(), codes[1:]).item() / math.log(2)


class Decoder(nn.Module):
    """A linear map [..., D] -> [..., A] whose numbers are no parameters."""

    weight: Tensor
    bias: Tensor

    def __init__(self, hidden_size: int, characters: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(hidden_size)
        self.register_buffer("weight", torch.empty(characters, hidden_size).uniform_(-bound, bound))
        self.register_buffer("bias", torch.zeros(characters))

    def forward(self, states: Tensor) -> Tensor:
        return functional.linear(states, self.weight, self.bias)
