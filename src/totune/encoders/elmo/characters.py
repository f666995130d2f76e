"""From a word to the characters that the network reads of it: UTF-8 bytes between two marks.

Numbers are those of the official programs: 0 is left to padding, bytes are 1 to 256.
"""

from typing import Any

import numpy as np

from totune.encoders.words import BEGIN, EMPTY, END, Vocabulary

CHARACTERS = 261  # 256 bytes and the five below; without the one for padding
_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _FILL = range(256, 261)


def characters_of(word: str, length: int) -> np.ndarray:
    """The characters of a word, [length], from 1 to 261; what has no room is not read.

    Lone surrogates, which UTF-8 cannot write, are left out.
    """
    return _framed(word.encode("utf-8", "ignore"), length)


class CharacterTable:
    """The characters of every word of a vocabulary, worked out once.

    Copies of an encoder share it, as they share the vocabulary.

    Args:
        vocabulary: the words, which may grow.
        length: characters of a word, its begin and end included.
    """

    def __init__(self, vocabulary: Vocabulary, length: int) -> None:
        self._vocabulary, self._length = vocabulary, length
        self._rows = np.zeros((EMPTY, length), dtype=np.int16)
        self._rows[BEGIN] = _framed((_SENTENCE_BEGIN,), length)
        self._rows[END] = _framed((_SENTENCE_END,), length)
        self._count = EMPTY  # rows that are filled; there may be room for more

    def __deepcopy__(self, _: dict[int, Any]) -> "CharacterTable":
        return self

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Characters [N, length] of words [N] by their numbers; zeros for padding."""
        if self._count < len(self._vocabulary):
            self._grow()
        rows: np.ndarray = self._rows[numbers]
        return rows

    def _grow(self) -> None:
        new, count = self._vocabulary.words(self._count), len(self._vocabulary)
        if count > len(self._rows):
            room = np.zeros((2 * count, self._length), dtype=np.int16)
            room[: self._count] = self._rows[: self._count]
            self._rows = room
        for place, word in enumerate(new, self._count):
            self._rows[place] = characters_of(word, self._length)
        self._count = count


def _framed(inner: bytes | tuple[int, ...], length: int) -> np.ndarray:
    """[begin of word, inner, end of word, fill ...], [length]."""
    row = np.full(length, _FILL + 1, dtype=np.int16)
    codes = [_WORD_BEGIN, *inner[: length - 2], _WORD_END]
    row[: len(codes)] = np.asarray(codes) + 1
    return row
