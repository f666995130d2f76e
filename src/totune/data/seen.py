"""Which texts a model was trained on, as hashes: known again by who has them, read by nobody."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from totune.data.audit import TELLING_WORDS, text_key
from totune.data.examples import Examples

MOST = 100_000  # hashes that are kept: 0.8 MB beside any model
_BYTES = 8  # of a hash: two different texts have the same one in 1 of 2^64 cases


@dataclass(frozen=True)
class SeenTexts:
    """The texts of a training split.

    Attributes:
        hashes: of different texts but for case and white space, [at most `MOST`] uint64, sorted;
            of more texts the smallest hashes, which are a random sample of them (Broder 1997).
    """

    hashes: np.ndarray

    @classmethod
    def of(cls, train: Examples) -> "SeenTexts":
        return cls(np.unique(_hashes(train))[:MOST])

    def count(self, rows: Examples) -> tuple[int, int]:
        """How many rows have a text of training, and of how many this is known.

        It is known of all rows, or of a random sample where training had more texts than are kept.
        Sentences of few words, which recur by themselves, are left aside where words are tagged.
        """
        hashes = _hashes(rows)
        if len(self.hashes) == MOST:
            hashes = hashes[hashes <= self.hashes[-1]]
        return int(np.isin(hashes, self.hashes).sum()), len(hashes)


def _hashes(examples: Examples) -> np.ndarray:
    keys = [text_key(row) for row in examples]
    if examples.words is not None:
        keys = [key for key in keys if len(key[0].split()) >= TELLING_WORDS]
    return np.array([_hash(key) for key in keys], dtype=np.uint64)


def _hash(texts: Sequence[str]) -> int:
    content = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=_BYTES).digest(), "big")
