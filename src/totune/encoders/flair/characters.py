"""From words to the texts that the language models read, and where in them each word is.

A text begins with a newline and has one space between two words, as Flair has it; between the texts
of a pair stands a newline, which ended every sentence that the models were trained on.

Shapes: B rows, T words of each, W words of all, N characters of words, C characters of the longest
text.
"""

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
        vocabulary: the words, which may grow.
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
        rows: which row each is of, [W].
        starts: where each begins in its row's text, [W], from 1: the marker is at 0.
        counts: how many characters each has, [W].
        lengths: of every row's text, the marker included, [B].
    """

    words: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, mask: np.ndarray, table: CodeTable) -> "Texts":
        """The texts of rows of words.

        Args:
            numbers: of the words, [B, T]; END is the newline between the texts of a pair.
            mask: which places hold words, [B, T] bool.
            table: of either direction, for both count characters alike.
        """
        rows, words = np.nonzero(mask)[0], numbers[mask]
        counts = np.array([len(codes) for codes in table.of(words)], dtype=np.int64)
        first, newlines = np.diff(rows, prepend=-1) > 0, words == END
        joined = newlines.copy()  # to what comes before, without a space
        joined[1:] |= newlines[:-1]
        sizes = counts + (first | ~joined)
        lengths = np.bincount(rows, sizes, len(mask)).astype(np.int64)
        begins = np.cumsum(lengths) - lengths  # of rows, in all texts end to end
        starts = np.cumsum(sizes) - counts - begins[rows]
        return cls(words, rows, starts, counts, np.maximum(lengths, 1))

    def codes(self, table: CodeTable) -> np.ndarray:
        """The texts by the numbers of their characters, [B, C]; markers after each one's end."""
        columns = np.arange(self.lengths.max())
        codes = np.full((len(self.lengths), len(columns)), table.marker)
        codes[(columns > 0) & (columns < self.lengths[:, None])] = table.space
        own, begins = self.flat(table)
        within = np.arange(len(own)) - np.repeat(begins, self.counts)
        codes[np.repeat(self.rows, self.counts), np.repeat(self.starts, self.counts) + within] = own
        return codes

    def reversed_codes(self, table: CodeTable) -> np.ndarray:
        """The same read from each text's end; the marker comes first again."""
        codes, lengths = self.codes(table), self.lengths[:, None]
        columns = np.arange(codes.shape[1])
        inside = (columns > 0) & (columns < lengths)
        found: np.ndarray = np.take_along_axis(
            codes, np.where(inside, lengths - columns, columns), axis=1
        )
        return found

    def flat(self, table: CodeTable) -> tuple[np.ndarray, np.ndarray]:
        """All words' characters by their numbers, [N], and where in them each word begins, [W]."""
        own = np.concatenate([np.empty(0, dtype=np.int64), *table.of(self.words)])
        return own, np.cumsum(self.counts) - self.counts

    @property
    def last_characters(self) -> np.ndarray:
        """The place of each word's last character in its text, [W]; of an empty word, before it."""
        places: np.ndarray = self.starts + self.counts - 1
        return places

    @property
    def first_characters(self) -> np.ndarray:
        """The place of each word's first character in its text read from the end, [W]; likewise."""
        places: np.ndarray = self.lengths[self.rows] - self.starts
        return places
