"""From words to the texts that the language models read, and where in them each word is.

A text begins with a newline and has one space between two words, as Flair has it; between the texts
of a pair stands a newline, which ended every sentence that the models were trained on.

Shapes: B rows, T words of each, W words of all, N characters of all, C characters of the longest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from totune.encoders.flair.options import Alphabet
from totune.encoders.words import END, Vocabulary

_MARKER, _SPACE = "\n", " "


class CodeTable:
    """The numbers of the characters of every word of a vocabulary, worked out once.

    Copies of an encoder share it, as they share the vocabulary.

    Args:
        alphabet: what has no place in it is read as its number 0.
        vocabulary: may grow.
    """

    def __init__(self, alphabet: Alphabet, vocabulary: Vocabulary) -> None:
        self._numbers = {item: number for number, item in enumerate(alphabet)}
        self._vocabulary = vocabulary
        self._codes: list[np.ndarray] = []
        self.marker, self.space = self.encode(_MARKER + _SPACE)

    def __deepcopy__(self, _: dict[int, Any]) -> "CodeTable":
        return self

    def encode(self, text: str) -> np.ndarray:
        """The numbers of a text's characters, [len(text)]."""
        return np.array([self._numbers.get(item, 0) for item in text], dtype=np.int64)

    def of(self, words: np.ndarray) -> list[np.ndarray]:
        """The numbers of each word's characters, of words [W] by their numbers."""
        known = len(self._codes)
        for number, word in enumerate(self._vocabulary.words(known), known):
            self._codes.append(self.encode(_MARKER if number == END else word))
        return [self._codes[number] for number in words]


@dataclass(frozen=True)
class Texts:
    """Where the words of rows are in the rows' texts.

    Attributes:
        words: all words by their numbers, row by row, [W].
        starts: where each begins in its row's text, [W], from 1: the marker is at 0.
        counts: how many characters each has, [W].
        rows: which row each is of, [W].
        lengths: of every row's text, the marker included, [B].
        own: which of all texts' characters, end to end, are those of words, [N].
    """

    words: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    lengths: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, mask: np.ndarray, table: CodeTable) -> "Texts":
        """The texts of words [B, T] by their numbers, of which `mask` says which there are.

        Args:
            numbers: of words; END is the newline between the texts of a pair.
            mask: bool.
            table: of either direction: both know the same words.
        """
        rows, words = np.nonzero(mask)[0], numbers[mask]
        counts = np.array([len(codes) for codes in table.of(words)], dtype=np.int64)
        first = np.diff(rows, prepend=-1) > 0
        marks = words == END
        after_mark = np.concatenate([[False], marks[:-1]])[: len(words)]
        before = first | ~(marks | after_mark)  # whether a marker or a space comes before
        ends = np.cumsum(before + counts)  # in all texts end to end
        lengths = np.zeros(len(mask), dtype=np.int64)
        np.add.at(lengths, rows, before + counts)
        starts = ends - counts
        own = np.ones(lengths.sum(), dtype=bool)
        own[starts[before] - 1] = False
        local = starts - (np.cumsum(lengths) - lengths)[rows]
        return cls(words, local, counts, rows, np.maximum(lengths, 1), own)

    def codes(self, table: CodeTable) -> np.ndarray:
        """The texts by the numbers of their characters, [B, C]; markers after each one's end."""
        whole = np.full(len(self.own), table.space)
        whole[self.own] = np.concatenate([*table.of(self.words), whole[:0]])
        padded = np.full((len(self.lengths), self.lengths.max()), table.marker)
        inside = np.arange(padded.shape[1]) < self.lengths[:, None]
        padded[inside] = whole
        padded[:, 0] = table.marker
        return padded

    def reverse(self, codes: np.ndarray) -> np.ndarray:
        """Texts [B, C], each read from its end; the marker comes first again."""
        last = self.lengths[:, None] - 1
        places = np.arange(codes.shape[1])
        inside = (places > 0) & (places <= last)
        reversed_codes: np.ndarray = np.take_along_axis(
            codes, np.where(inside, last + 1 - places, places), axis=1
        )
        return reversed_codes

    @property
    def last_characters(self) -> np.ndarray:
        """The place in its text of each word's last character, [W]; of the one before it if none."""
        return self.starts + self.counts - 1

    @property
    def first_characters(self) -> np.ndarray:
        """The place in its reversed text of each word's first character, [W], likewise."""
        return self.lengths[self.rows] - self.starts


def bags(codes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The codes of words end to end, and where each word's begin."""
