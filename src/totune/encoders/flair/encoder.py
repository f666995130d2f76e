"""A pair of character language models as a stack of blocks.

Shapes: B examples, T words, W words of all, C characters of the longest text, D state of a
direction; a word's state is [forward, backward], H = 2D.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from totune.encoders.encoder import Cached, Encoder, LayerStack
from totune.encoders.flair.characters import CodeTable, Texts
from totune.encoders.flair.language_model import LanguageModel
from totune.encoders.flair.options import BACKWARD, FORWARD, FlairOptions
from totune.encoders.own_format import fingerprint_of, write_encoder
from totune.encoders.words import Vocabulary
from totune.inputs.batches import Batch

MODEL_TYPE = "flair"
_NAMES = {"ahead": FORWARD, "back": BACKWARD}  # of the two models, ours and in files

# The network has no limit of its own; this one bounds the memory that a batch takes.
MAX_WORDS = 512


class FlairLmEncoder(Encoder):
    """Contextual string embeddings (Akbik et al. 2018): states of two language models.

    A row's text is its words joined by spaces, after a newline. A word's state is the forward
    model's after its last character, then the backward model's after its first, which has read the
    text from its end: what Flair calls `with_whitespace=False`. (Flair's default reads one
    character more of each, the space.) Of an empty word it is the state after the character before.

    Block 0 embeds characters, block 1 is the recurrence of both directions. Characters are no
    words, so block 0 gives of a word the mean of its characters' vectors, [forward, zeros,
    backward, zeros], and block 1 reads `input_ids` whenever it is computed, also where it starts
    from block 0's output.

    Weights are random until some are loaded.

    Args:
        options: the networks' shape and alphabets.
        vocabulary: shared with the tokenizer, whose numbers `input_ids` are.
    """

    reads_words: ClassVar[bool] = True

    def __init__(self, options: FlairOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.kind = "flair"
        self.options = options
        self.width = 2 * options.hidden_size
        self.depth = 1
        self.max_length = MAX_WORDS
        sizes = options.embedding_size, options.hidden_size
        self.ahead = LanguageModel(len(options.forward), *sizes)
        self.back = LanguageModel(len(options.backward), *sizes)
        self._ahead_codes = CodeTable(options.forward, vocabulary)
        self._back_codes = CodeTable(options.backward, vocabulary)

    def encode(
        self, batch: Batch, start: Cached | None = None, stop: int | None = None
    ) -> LayerStack:
        """The outputs of every block from `start` (or the words) up to `stop` (or the top).

        Padding holds zeros, but for what `start` holds there.

        Raises:
            ValueError: if `start` and `stop` are not depths of this encoder in rising order.
        """
        first = 0 if start is None else start.depth
        last = self.depth if stop is None else stop
        if not 0 <= first <= last <= self.depth:
            raise ValueError(f"cannot run from depth {first} to {last} of {self.depth}")
        given = None if start is None else start.states.to(self._dtype)
        if given is not None and first == last:
            return LayerStack(first, (given,))
        mask = batch.attention_mask.bool()
        texts = Texts.of(batch.input_ids.cpu().numpy(), mask.cpu().numpy(), self._ahead_codes)
        bottom = self._spellings(texts, mask) if given is None else given
        if last == 0:
            return LayerStack(0, (bottom,))
        return LayerStack(0, (bottom, self._contexts(texts, mask, trains_letters=given is None)))

    def bits_per_character(self, text: str) -> tuple[float, float]:
        """How well the models predict a text's characters, forward and backward.

        Args:
            text: as the models were trained on it: words and punctuation set apart by spaces.

        Raises:
            ValueError: if it is empty.
        """
        if not text:
            raise ValueError("an empty text has no bits per character")
        ahead = self._tensor(self._ahead_codes.encode("\n" + text))
        back = self._tensor(self._back_codes.encode("\n" + text[::-1]))
        return self.ahead.bits(ahead), self.back.bits(back)

    def block_modules(self, depth: int) -> Mapping[str, nn.Module]:
        name = "rnn" if depth else "encoder"
        return {
            f"ahead.{name}": getattr(self.ahead, name),
            f"back.{name}": getattr(self.back, name),
        }

    def save(self, folder: Path) -> None:
        """Writes `config.json` and `model.safetensors`, in float32."""
        facts = {"model_type": MODEL_TYPE, **self.options.to_json()}
        weights = {name_in_file(n): w.float() for n, w in self.state_dict().items()}
        write_encoder(folder, facts, weights)

    def fingerprint(self) -> str:
        """A hash (32 hexadecimal digits) of the options and the weights as they are now."""
        return fingerprint_of({"kind": self.kind, **self.options.to_json()}, self.state_dict())

    def extra_repr(self) -> str:
        """Everything but the weights that decides the output: the cache goes by it."""
        return self.options.describe()

    @property
    def _dtype(self) -> torch.dtype:
        return self.ahead.encoder.weight.dtype

    def _spellings(self, texts: Texts, mask: Tensor) -> Tensor:
        """The mean vector of each word's characters, either direction's, [B, T, H]."""
        halves = []
        for model, table in ((self.ahead, self._ahead_codes), (self.back, self._back_codes)):
            codes, begins = (self._tensor(part) for part in texts.flat(table))
            means = functional.embedding_bag(codes, model.encoder.weight, begins, mode="mean")
            halves.append(functional.pad(means, (0, self.options.hidden_size - means.shape[1])))
        return _by_word(torch.cat(halves, dim=-1), mask)

    def _contexts(self, texts: Texts, mask: Tensor, trains_letters: bool) -> Tensor:
        """The states of both models at each word, [B, T, H]."""
        halves = []
        for model, codes, places in (
            (self.ahead, texts.codes(self._ahead_codes), texts.last_characters),
            (self.back, texts.reversed_codes(self._back_codes), texts.first_characters),
        ):
            letters = model.encoder(self._tensor(codes))  # [B, C, E]
            states = model.states(letters if trains_letters else letters.detach())  # [B, C, D]
            halves.append(states[self._tensor(texts.rows), self._tensor(places)])  # [W, D]
        return _by_word(torch.cat(halves, dim=-1), mask)

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)


def name_in_file(name: str) -> str:
    """What files call one of the encoder's weights: Flair's name after the model's direction."""
    model, _, rest = name.partition(".")
    return f"{_NAMES[model]}.{rest}"


def _by_word(states: Tensor, mask: Tensor) -> Tensor:
    """States of words [W, H], row by row, where `mask` [B, T] has them; zeros on padding."""
    found = states.new_zeros(*mask.shape, states.shape[-1])
    found[mask] = states
    return found
