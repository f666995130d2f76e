"""A forward and a backward language model that share words and softmax (Peters et al. 2018, 3.1).

    sum over words k of  log p(t_k | t_1 .. t_(k-1)) + log p(t_k | t_(k+1) .. t_N)

A row is some sentences, with the markers of begin and end around each as the encoder puts them: a
direction is asked for the next word after every word and marker but the last. The softmax is
adaptive (Grave et al. 2017): frequent words are told from each other first, rare ones in clusters
with smaller vectors. It runs in float32, as the recurrence does.

Shapes: B rows, T places, N places without padding, P projection, V words of the softmax.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from totune.encoders.elmo.characters import CharacterTable
from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.steps import Steps
from totune.encoders.words import BEGIN, END, PADDING, Vocabulary, WordTokenizer
from totune.pretraining.kernel import kernel_layer
from totune.pretraining.objective import Drawn, Objective, perplexity
from totune.pretraining.rows import Rows
from totune.pretraining.softmax import SOFTMAX, SOFTMAX_WORDS, WordSoftmax

WAYS = ("forward", "backward")  # the names of the losses


class BilmObjective(Objective):
    """An ELMo, and the softmax over its words.

    Args:
        encoder: whose characters and layers are trained.
        tokenizer: of the encoder; its vocabulary numbers the words of the rows.
        softmax: over the words that are told from each other.
    """

    def __init__(
        self, encoder: ElmoEncoder, tokenizer: WordTokenizer, softmax: WordSoftmax
    ) -> None:
        super().__init__()
        self.encoder, self.tokenizer, self.softmax = encoder, tokenizer, softmax
        vocabulary: Vocabulary = tokenizer.vocabulary
        self._characters = CharacterTable(vocabulary, encoder.options.word_length)
        self._classes = softmax.classes_of(vocabulary)

    def draw(self, rows: Rows, which: np.ndarray, seed: int) -> Drawn:
        """Nothing is left to chance, so `seed` is not read."""
        texts = [_framed(rows.read(int(row))) for row in which]
        lengths = np.asarray([len(text) for text in texts])
        ids = np.full((len(texts), lengths.max()), PADDING)
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text
        asked = int((lengths - 1).sum())
        tensors = {"ids": torch.from_numpy(ids), "lengths": torch.from_numpy(lengths)}
        return Drawn(tensors, dict.fromkeys(WAYS, asked), int((lengths - 2).sum()))

    def part(self, drawn: Drawn, own: np.ndarray) -> dict[str, Tensor]:
        """The different words of some rows by their characters, and where each comes."""
        lengths = drawn.tensors["lengths"][own]
        ids = drawn.tensors["ids"][own][:, : int(lengths.max())].numpy()
        numbers, found = np.unique(ids, return_inverse=True)
        real = numbers != PADDING
        characters = self._characters.of(np.where(real, numbers, BEGIN))
        classes = self._classes[ids]
        return {
            "characters": torch.from_numpy(characters),
            "words": torch.from_numpy(found.reshape(ids.shape)),
            "classes": torch.from_numpy(classes),
            "lengths": lengths,
        }

    def forward(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        return self._run(part, fast=part["words"].is_cuda)

    def count(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        return self._run(part, fast=False)

    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """Perplexities of both directions, and of both together: exp of the mean loss."""
        means = {way: sums[way] / max(1, targets[way]) for way in WAYS}
        both = sum(means.values()) / len(WAYS)
        return {
            "perplexity": perplexity(both),
            **{f"{way}_perplexity": perplexity(means[way]) for way in WAYS},
        }

    def save(self, folder: Path) -> None:
        self.encoder.save(folder)
        self.tokenizer.save_pretrained(folder)
        weights = self.softmax.state_dict()
        save_file({name: one.cpu().contiguous() for name, one in weights.items()}, folder / SOFTMAX)
        (folder / SOFTMAX_WORDS).write_text("\n".join(self.softmax.words), encoding="utf-8")

    def _run(self, part: dict[str, Tensor], fast: bool) -> dict[str, Tensor]:
        lengths = part["lengths"].cpu().numpy()
        words, classes = part["words"], part["classes"]
        vectors = self.encoder.embedder(part["characters"])  # [U, P]
        states = functional.embedding(words, vectors.float())  # [B, T, P]
        steps = Steps.of(lengths, words.shape[1], words.device)
        tokens = steps.pack(torch.cat([states, states], dim=-1))  # [2, N, P]
        for layer in self.encoder.layers:
            tokens = _layer(layer, tokens, steps.sizes, fast)
        asked = torch.from_numpy(_goes_on(steps.sizes)).to(words.device)  # [A]
        sums = {}
        for way, (name, onward) in enumerate(zip(WAYS, (1, -1), strict=True)):
            places = steps.places[way].index_select(0, asked)
            targets = classes.flatten().index_select(0, places + onward)
            with torch.autocast(words.device.type, enabled=False):
                sums[name] = self.softmax(tokens[way].index_select(0, asked), targets)
        return sums


def _layer(layer: nn.Module, tokens: Tensor, sizes: tuple[int, ...], fast: bool) -> Tensor:
    """One layer; without clips, PyTorch's own kernel may run it."""
    assert isinstance(layer, ElmoLayer)
    if fast and layer.cell_clip is None and layer.projection_clip is None:
        return kernel_layer(layer, tokens, sizes)
    outputs: Tensor = layer(tokens, sizes)[0]
    return outputs


def _framed(pieces: np.ndarray) -> np.ndarray:
    """A row with its begin, and with its end if it was cut before one."""
    end = [] if len(pieces) and pieces[-1] == END else [END]
    return np.concatenate([[BEGIN], pieces, end]).astype(np.int64)


def _goes_on(sizes: Sequence[int]) -> np.ndarray:
    """Which of all steps' places are not the last of their row, [A].

    The rows that still run are the longest, so of a step's places the first go on.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    following = [*sizes[1:], 0]
    return np.concatenate(
        [np.arange(start, start + size) for start, size in zip(starts, following, strict=True)]
    )
