"""Next-sentence prediction: pairs of stretches of text, half of which follow each other.

As in Devlin et al. 2019 (3.1, task 2): the first stretch is a number of sentences of a row, and
the second is, half of the time, the rest of the same row; else it is from another document.
"""

from typing import NamedTuple

import numpy as np

from totune.errors import DataError
from totune.pretraining.rows import Rows

_TRIES = 100


class Pair(NamedTuple):
    """Two stretches of pieces, and whether the second is from elsewhere."""

    first: np.ndarray
    second: np.ndarray
    apart: bool


def pairable(rows: Rows) -> Rows:
    """The rows that hold two sentences or more, so that they can be divided between two.

    Raises:
        DataError: if they are not from two documents at least.
    """
    several = np.asarray([len(rows.breaks(row)) > 0 for row in range(len(rows))], dtype=bool)
    found = rows.only(several)
    if len(np.unique(found.documents)) < 2:
        raise DataError(
            "--next-sentence needs two documents with two sentences each, in the text to train on "
            "and in the one held out: put blank lines between documents, or leave the option out."
        )
    return found


def draw_pair(rows: Rows, row: int, random: np.random.Generator) -> Pair:
    """A pair whose first stretch begins a row.

    Args:
        rows: pairable ones.
        row: of them.
        random: decides where it is divided, and what follows.
    """
    pieces = rows.read(row)
    at = int(random.choice(rows.breaks(row)))
    if random.random() < 0.5:
        return Pair(pieces[:at], pieces[at:], apart=False)
    other = _elsewhere(rows, row, random)
    start = int(random.choice(rows.breaks(other)))
    return Pair(pieces[:at], rows.read(other)[start:][: rows.limit - at], apart=True)


def _elsewhere(rows: Rows, row: int, random: np.random.Generator) -> int:
    """A row of another document."""
    for _ in range(_TRIES):
        other = int(random.integers(len(rows)))
        if rows.documents[other] != rows.documents[row]:
            return other
    others = np.flatnonzero(rows.documents != rows.documents[row])  # one document is nearly all
    return int(random.choice(others))
