"""ELMo as a stack of blocks.

Shapes: B examples, T words, P projection of a direction; a state is [forward, backward], H = 2P.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from totune.encoders.elmo.character_cnn import CharacterCnn
from totune.encoders.elmo.characters import CharacterTable
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.options import ElmoOptions
from totune.encoders.elmo.recurrence import State
from totune.encoders.elmo.steps import Steps
from totune.encoders.encoder import Cached, Encoder, LayerStack
from totune.encoders.own_format import fingerprint_of, write_encoder
from totune.encoders.words import BEGIN, END, PADDING, Vocabulary
from totune.inputs.batches import Batch

MODEL_TYPE = "elmo"

# The network has no limit of its own; this one bounds the memory that a batch takes.
MAX_WORDS = 512


class ElmoEncoder(Encoder):
    """A bidirectional language model over characters (Peters et al. 2018).

    Block 0 is a word's vector, twice; each further block is a layer of both directions. States are
    those of the words: the markers of a sentence's begin and end, which the network was trained
    with, are added to every row internally. To start at a block in the middle is exact all the
    same: forward, the layers' states at the begin depend on nothing else, and backward those at the
    end, so they are computed again; the state of a direction's last marker is never read.

    Weights are random until some are loaded. Recurrences run in the precision of the weights, also
    under autocast.

    Args:
        options: the network's shape.
        vocabulary: shared with the tokenizer, whose numbers `input_ids` are.

    Attributes:
        stateful: whether a row starts where the same row of the batch before ended, as the official
            program computed features of running text. States then depend on what came before, so
            no block can be cached.
    """

    reads_words: ClassVar[bool] = True

    def __init__(self, options: ElmoOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.kind = MODEL_TYPE
        self.options = options
        self.width = 2 * options.projection_size
        self.depth = options.layers
        self.max_length = MAX_WORDS
        self.embedder = CharacterCnn(options)
        self.layers = nn.ModuleList(
            ElmoLayer(
                options.projection_size,
                options.cell_size,
                options.cell_clip,
                options.projection_clip,
                residual=options.residual and layer > 0,
            )
            for layer in range(options.layers)
        )
        self.stateful = False
        self._kept: dict[int, State] = {}
        self._characters = CharacterTable(vocabulary, options.word_length)

    def encode(
        self, batch: Batch, start: Cached | None = None, stop: int | None = None
    ) -> LayerStack:
        """The outputs of every block from `start` (or the words) up to `stop` (or the top).

        Padding holds zeros, but for what `start` holds there.

        Raises:
            ValueError: if `start` and `stop` are not depths of this encoder in rising order, or the
                encoder is stateful and `start` is given or the number of rows has changed.
        """
        first = 0 if start is None else start.depth
        last = self.depth if stop is None else stop
        if not 0 <= first <= last <= self.depth:
            raise ValueError(f"cannot run from depth {first} to {last} of {self.depth}")
        if start is not None and self.stateful:
            raise ValueError("a stateful encoder cannot start from a cached block")
        mask = batch.attention_mask.bool()
        lengths = mask.sum(dim=1).cpu().numpy()
        if start is None:
            framed = self._embed(_framed(batch.input_ids * mask, lengths))  # [B, T + 2, H]
            outputs = [_words(framed, mask)]
        else:
            outputs = [start.states.to(self._dtype)]
            if first == last:
                return LayerStack(first, tuple(outputs))
            framed = self._between_markers(outputs[0], lengths, first)
        steps = Steps.of(lengths + 2, framed.shape[1], framed.device)
        tokens = steps.pack(framed)
        for depth in range(first + 1, last + 1):
            tokens = self._layer(depth, tokens, steps)
            outputs.append(_words(steps.unpack(tokens), mask))
        return LayerStack(first, tuple(outputs))

    def reset_state(self) -> None:
        """Forgets what a stateful encoder has read."""
        self._kept.clear()

    def block_modules(self, depth: int) -> Mapping[str, nn.Module]:
        if depth == 0:
            return {"embedder": self.embedder}
        return {f"layers.{depth - 1}": self.layers[depth - 1]}

    def save(self, folder: Path) -> None:
        """Writes `config.json` and `model.safetensors`."""
        facts = {"model_type": MODEL_TYPE, "options": self.options.to_json()}
        write_encoder(folder, facts, self.state_dict())

    def fingerprint(self) -> str:
        """A hash (32 hexadecimal digits) of the options and the weights as they are now."""
        return fingerprint_of({"kind": self.kind, **self.options.to_json()}, self.state_dict())

    def extra_repr(self) -> str:
        """Everything but the weights that decides the output: the cache goes by it."""
        return self.options.describe()

    @property
    def _dtype(self) -> torch.dtype:
        return self.embedder.characters.weight.dtype

    def _embed(self, numbers: Tensor) -> Tensor:
        """Vectors of words [B, T], each twice, [B, T, H]; zeros for padding."""
        real = numbers != PADDING
        words, found = torch.unique(numbers[real], return_inverse=True)
        characters = torch.from_numpy(self._characters.of(words.cpu().numpy()))
        vectors = self.embedder(characters).to(self._dtype)  # a word that comes often: once
        at = torch.zeros_like(numbers).masked_scatter(real, found)
        states = functional.embedding(at, vectors).masked_fill(~real.unsqueeze(-1), 0.0)
        return torch.cat([states, states], dim=-1)

    @torch.no_grad()
    def _marker_states(self, depth: int) -> Tensor:
        """What block `depth` makes of begin and end, [2, H]: the first forward, the other backward.

        The other halves are not those of any sentence, and not to be read.
        """
        device = self.embedder.characters.weight.device
        states = self._embed(torch.tensor([[BEGIN], [END]], device=device))
        steps = Steps.of(np.ones(2, dtype=np.int64), 1, device)
        tokens = steps.pack(states)
        for layer in self.layers[:depth]:
            tokens = layer(tokens, steps.sizes)[0]
        return steps.unpack(tokens).squeeze(1)

    def _between_markers(self, states: Tensor, lengths: np.ndarray, depth: int) -> Tensor:
        """Cached states [B, T, H] with those of the markers around each row's, [B, T + 2, H]."""
        begin, end = self._marker_states(depth)
        framed = functional.pad(states, (0, 0, 1, 1))
        framed[:, 0] = begin
        framed[torch.arange(len(framed)), torch.from_numpy(lengths + 1)] = end
        return framed

    def _layer(self, depth: int, tokens: Tensor, steps: Steps) -> Tensor:
        """One layer, from zeros or from where it ended."""
        kept = self._kept.get(depth) if self.stateful else None
        if kept is not None:
            if kept.output.shape[1] != len(steps.order):
                raise ValueError("a stateful encoder reads the same number of rows until reset")
            kept = State(*(part[:, steps.order] for part in kept))
        outputs, end = self.layers[depth - 1](tokens, steps.sizes, kept)
        if self.stateful:
            self._kept[depth] = State(*(part[:, steps.rank].detach() for part in end))
        tokens_above: Tensor = outputs
        return tokens_above


def _framed(numbers: Tensor, lengths: np.ndarray) -> Tensor:
    """Words [B, T] with the markers of a sentence's begin and end around each row, [B, T + 2]."""
    framed = functional.pad(numbers, (1, 1), value=PADDING)
    framed[:, 0] = BEGIN
    framed[torch.arange(len(framed)), torch.from_numpy(lengths + 1)] = END
    return framed


def _words(framed: Tensor, mask: Tensor) -> Tensor:
    """The states of words, [B, T + 2, H] -> [B, T, H], without markers; zeros on padding."""
    return framed[:, 1:-1].masked_fill(~mask.unsqueeze(-1), 0.0)
