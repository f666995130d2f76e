"""What a tokenizer puts around texts, so that rows of pieces can be framed without their text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Frame:
    """The special pieces before, between and after one or two texts.

    Attributes:
        before: the first text.
        between: two texts.
        after: the last text.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> "Frame":
        """As the tokenizer frames a pair of words."""
        encoded = tokenizer("a", "b", return_special_tokens_mask=True)
        ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
        first = special.index(0)
        length = special[first:].index(1)
        second = first + length + special[first + length :].index(0)
        after = second + special[second:].index(1)
        return cls(tuple(ids[:first]), tuple(ids[first + length : second]), tuple(ids[after:]))

    def size(self, texts: int) -> int:
        """How many special pieces go with one text or two."""
        return len(self.before) + len(self.after) + (texts - 1) * len(self.between)

    def put(self, texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One text or two with their frame.

        Returns:
            All pieces [T], to which text each belongs (0 or 1), and which are special.
        """
        parts = [np.asarray(self.before), texts[0]]
        if len(texts) > 1:
            parts += [np.asarray(self.between), texts[1]]
        parts.append(np.asarray(self.after))
        sides = [0, 0, 0, 1, 1] if len(texts) > 1 else [0, 0, 0]
        lengths = [len(part) for part in parts]
        special = [number % 2 == 0 for number in range(len(parts))]
        ids = np.concatenate(parts).astype(np.int64)
        return ids, np.repeat(sides, lengths), np.repeat(special, lengths)
