"""A forward and a backward language model that share words and softmax (Peters et al. 2018, 3.1).

    sum over words k of  log p(t_k | t_1 .. t_(k-1)) + log p(t_k | t_(k+1) .. t_N)

A row is some sentences, with the begin and end markers around each as the encoder puts them: each
direction predicts the next word after every word and marker but the last. The softmax is adaptive
(Grave et al. 2017): frequent words have classes of their own, rare ones share clusters with
smaller vectors. It runs in float32, as the recurrence does.

Shapes: B rows, T positions, N positions without padding, P projection, V words of the softmax.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from totune.encoders.elmo.characters import CharacterTable
from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.steps import Steps
from totune.encoders.words import BEGIN, EMPTY, END, PADDING, Vocabulary, WordTokenizer
from totune.errors import ModelError
from totune.pretraining.objective import Objective, StepBatch, perplexity
from totune.pretraining.rows import PackedRows

DIRECTIONS = ("forward", "backward")  # the names of the losses
SOFTMAX, SOFTMAX_WORDS = "softmax.safetensors", "softmax_words.txt"
_CUTOFFS = (2_000, 10_000, 50_000)  # of the softmax's clusters, by rank
_SHRINKING = 2.0  # factor by which the vectors of each next cluster are smaller
_UNKNOWN = 1  # the class of every word that the softmax does not know
_MARKERS = {END: 0, BEGIN: 2}  # classes of markers, as frequent as the most frequent words
_FIRST_WORD = 3  # the class of the first word


class WordSoftmax(nn.Module):
    """An adaptive softmax (Grave et al. 2017): three classes that are not words, then words.

    Args:
        size: P, the size of the states it reads.
        words: the most frequent first.
    """

    def __init__(self, size: int, words: Sequence[str]) -> None:
        super().__init__()
        self.words = list(words)
        classes = len(words) + _FIRST_WORD
        cutoffs = [cutoff for cutoff in _CUTOFFS if cutoff < classes] or [classes - 1]
        self.adaptive = nn.AdaptiveLogSoftmaxWithLoss(size, classes, cutoffs, _SHRINKING)

    def forward(self, states: Tensor, targets: Tensor) -> Tensor:
        """The summed negative log probability of classes [N] given states [N, P]."""
        log_probabilities: Tensor = self.adaptive(states.float(), targets).output
        return -log_probabilities.sum()

    def classes_of(self, vocabulary: Vocabulary) -> np.ndarray:
        """The class of every number of a vocabulary."""
        known = {word: number for number, word in enumerate(self.words, _FIRST_WORD)}
        classes = np.full(len(vocabulary), _UNKNOWN, dtype=np.int64)
        for marker, number in _MARKERS.items():
            classes[marker] = number
        for number, word in enumerate(vocabulary.words(EMPTY + 1), EMPTY + 1):
            classes[number] = known.get(word, _UNKNOWN)
        return classes

    def save(self, folder: Path) -> None:
        """Writes its weights and its words beside an encoder."""
        weights = {name: one.cpu().contiguous() for name, one in self.state_dict().items()}
        save_file(weights, folder / SOFTMAX)
        (folder / SOFTMAX_WORDS).write_text("\n".join(self.words), encoding="utf-8")


def read_softmax(folder: Path, size: int) -> WordSoftmax | None:
    """The softmax that was saved beside an encoder, None if there is none.

    Raises:
        ModelError: if its files are damaged or do not fit each other.
    """
    if not (folder / SOFTMAX).is_file():
        return None
    try:
        words = (folder / SOFTMAX_WORDS).read_text(encoding="utf-8").split("\n")
        softmax = WordSoftmax(size, words)
        softmax.load_state_dict(load_file(folder / SOFTMAX))
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"The softmax in {folder} cannot be read ({reason}). Remove {SOFTMAX} to start with a "
            "new one."
        ) from None
    return softmax


class BilmObjective(Objective):
    """An ELMo, and the softmax over its words.

    Args:
        encoder: its characters and layers are trained.
        tokenizer: that of the encoder; its vocabulary numbers the words of the rows.
        softmax: over the words that are predicted.
    """

    def __init__(
        self, encoder: ElmoEncoder, tokenizer: WordTokenizer, softmax: WordSoftmax
    ) -> None:
        super().__init__()
        self.encoder, self.tokenizer, self.softmax = encoder, tokenizer, softmax
        vocabulary: Vocabulary = tokenizer.vocabulary
        self._characters = CharacterTable(vocabulary, encoder.options.word_length)
        self._classes = softmax.classes_of(vocabulary)

    def collate(self, rows: PackedRows, indices: np.ndarray, seed: int) -> StepBatch:
        """Makes no random choice, so `seed` is not read."""
        texts = [_with_markers(rows.read(int(row))) for row in indices]
        lengths = np.asarray([len(text) for text in texts])
        ids = np.full((len(texts), lengths.max()), PADDING)
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text
        predictions = int((lengths - 1).sum())
        tensors = {"ids": torch.from_numpy(ids), "lengths": torch.from_numpy(lengths)}
        targets = dict.fromkeys(DIRECTIONS, predictions)
        return StepBatch(tensors, targets, int((lengths - 2).sum()))

    def micro_batch(self, batch: StepBatch, indices: np.ndarray) -> dict[str, Tensor]:
        """The distinct words of some rows by their characters, and where each occurs."""
        lengths = batch.tensors["lengths"][indices]
        ids = batch.tensors["ids"][indices][:, : int(lengths.max())].numpy()
        numbers, occurrences = np.unique(ids, return_inverse=True)
        real = numbers != PADDING
        characters = self._characters.of(np.where(real, numbers, BEGIN))
        return {
            "characters": torch.from_numpy(characters),
            "words": torch.from_numpy(occurrences.reshape(ids.shape)),
            "classes": torch.from_numpy(self._classes[ids]),
            "lengths": lengths,
        }

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return self._losses(inputs, use_kernel=inputs["words"].is_cuda)

    def countable_forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return self._losses(inputs, use_kernel=False)

    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """Perplexity of both directions together (exp of the mean loss), and of each."""
        means = {name: sums[name] / max(1, targets[name]) for name in DIRECTIONS}
        both = sum(means.values()) / len(DIRECTIONS)
        return {
            "perplexity": perplexity(both),
            **{f"{name}_perplexity": perplexity(means[name]) for name in DIRECTIONS},
        }

    def save(self, folder: Path) -> None:
        self.encoder.save(folder)
        self.tokenizer.save_pretrained(folder)
        self.softmax.save(folder)

    def _losses(self, inputs: dict[str, Tensor], use_kernel: bool) -> dict[str, Tensor]:
        lengths = inputs["lengths"].cpu().numpy()
        words, classes = inputs["words"], inputs["classes"]
        vectors = self.encoder.embedder(inputs["characters"])  # a vector per distinct word, [U, P]
        states = functional.embedding(words, vectors.float())  # [B, T, P]
        steps = Steps.of(lengths, words.shape[1], words.device)
        tokens = steps.pack(torch.cat([states, states], dim=-1))  # [2, N, P]
        for layer in self.encoder.layers:
            tokens = _run_layer(layer, tokens, steps.sizes, use_kernel)
        predicting = torch.from_numpy(_not_last(steps.sizes)).to(words.device)  # [A]
        sums = {}
        for direction, (name, onward) in enumerate(zip(DIRECTIONS, (1, -1), strict=True)):
            places = steps.places[direction].index_select(0, predicting)
            targets = classes.flatten().index_select(0, places + onward)
            with torch.autocast(words.device.type, enabled=False):
                sums[name] = self.softmax(tokens[direction].index_select(0, predicting), targets)
        return sums


def _with_markers(tokens: np.ndarray) -> np.ndarray:
    """A row after its begin marker, and before an end marker if it was cut inside a sentence."""
    end = [] if len(tokens) and tokens[-1] == END else [END]
    return np.concatenate([[BEGIN], tokens, end]).astype(np.int64)


def _not_last(sizes: Sequence[int]) -> np.ndarray:
    """Indices of all steps' tokens that are not the last of their row, [A].

    The rows that still run are the longest, so the first tokens of a step have a next one.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    following = [*sizes[1:], 0]
    return np.concatenate(
        [np.arange(start, start + size) for start, size in zip(starts, following, strict=True)]
    )


def _run_layer(
    layer: nn.Module, tokens: Tensor, sizes: tuple[int, ...], use_kernel: bool
) -> Tensor:
    """One layer; without clips, PyTorch's own kernel may run it."""
    assert isinstance(layer, ElmoLayer)
    if use_kernel and layer.cell_clip is None and layer.projection_clip is None:
        return run_lstm_kernel(layer, tokens, sizes)
    outputs: Tensor = layer(tokens, sizes)[0]
    return outputs


def run_lstm_kernel(layer: ElmoLayer, tokens: Tensor, sizes: Sequence[int]) -> Tensor:
    """A layer without clips through PyTorch's LSTM kernel, which is cuDNN's on a GPU.

    On a processor `ElmoLayer` itself takes less time.

    Args:
        layer: its weights.
        tokens: in the order of `Steps`, [2, N, P].
        sizes: sequences that still run at each step.

    Returns:
        The outputs from an initial state of zeros, [2, N, P].
    """
    steps = torch.tensor(sizes)
    with torch.autocast(tokens.device.type, enabled=False):
        inputs = tokens.to(layer.bias.dtype)
        outputs = torch.stack([_run_direction(layer, at, inputs[at], steps) for at in (0, 1)])
    return outputs + tokens if layer.residual else outputs


def _run_direction(layer: ElmoLayer, direction: int, tokens: Tensor, sizes: Tensor) -> Tensor:
    """One direction, [N, P] -> [N, P]."""
    size, cells = layer.projection_weight.shape[1:]
    rows = int(sizes[0])
    weights = [
        layer.input_weight[direction],
        layer.hidden_weight[direction],
        layer.bias[direction],
        torch.zeros_like(layer.bias[direction]),  # the kernel has two biases
        layer.projection_weight[direction],
    ]
    start = (tokens.new_zeros(1, rows, size), tokens.new_zeros(1, rows, cells))
    with warnings.catch_warnings():
        # Weights of two directions in one tensor are not laid out as cuDNN has them: it copies.
        warnings.filterwarnings("ignore", message="RNN module weights")
        output: Tensor = torch.lstm(tokens, sizes, start, weights, True, 1, 0.0, True, False)[0]
    return output
