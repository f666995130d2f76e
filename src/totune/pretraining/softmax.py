"""The softmax over words that a language model tells from each other."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from totune.encoders.words import BEGIN, EMPTY, END, Vocabulary
from totune.errors import ModelError

SOFTMAX, SOFTMAX_WORDS = "softmax.safetensors", "softmax_words.txt"
_BORDERS = (2_000, 10_000, 50_000)  # of the clusters, by rank
_UNKNOWN = 1  # the class of every other word
_SPECIAL = {END: 0, BEGIN: 2}  # markers are as frequent as the most frequent words
_FIRST = 3  # the class of the first word
_SHRINKING = 2.0  # by which the vectors of each next cluster are smaller


class WordSoftmax(nn.Module):
    """An adaptive softmax (Grave et al. 2017): three classes that are no words, then words.

    Args:
        size: P, of the states it reads.
        words: the most frequent first.
    """

    def __init__(self, size: int, words: Sequence[str]) -> None:
        super().__init__()
        self.words = list(words)
        classes = len(words) + _FIRST
        borders = [border for border in _BORDERS if border < classes] or [classes - 1]
        self.adaptive = nn.AdaptiveLogSoftmaxWithLoss(size, classes, borders, _SHRINKING)

    def forward(self, states: Tensor, targets: Tensor) -> Tensor:
        """The summed negative log probability of classes [N] after states [N, P]."""
        found: Tensor = self.adaptive(states.float(), targets).output
        return -found.sum()

    def classes_of(self, vocabulary: Vocabulary) -> np.ndarray:
        """The class of every number of a vocabulary."""
        known = {word: number for number, word in enumerate(self.words, _FIRST)}
        classes = np.full(len(vocabulary), _UNKNOWN, dtype=np.int64)
        for marker, number in _SPECIAL.items():
            classes[marker] = number
        for number, word in enumerate(vocabulary.words(EMPTY + 1), EMPTY + 1):
            classes[number] = known.get(word, _UNKNOWN)
        return classes


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
            f"The softmax in {folder} cannot be read ({reason}). Remove {SOFTMAX} to begin with a "
            "new one."
        ) from None
    return softmax
