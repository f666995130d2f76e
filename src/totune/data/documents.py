"""Which document each row comes from: numbered, kept together, and drawn whole."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from totune.data.examples import Examples
from totune.data.tables import Cell

MIN_DOCUMENTS = 10  # fewer are not drawn whole: one might be half of the data


def number_documents(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Numbers documents from 0 in the order they come; a row without a value is its own."""
    numbers: dict[str | int, int] = {}
    keys = [at if cell is None else cell for at, cell in enumerate(cells)]
    return tuple(numbers.setdefault(key, len(numbers)) for key in keys)


def stand_together(documents: Sequence[int]) -> bool:
    """Whether no document is interrupted by another."""
    return len(list(groupby(documents))) == len(set(documents))


def gather(examples: Examples) -> Examples:
    """The same rows with those of one document together, documents and rows in their order."""
    documents = examples.documents
    if documents is None or stand_together(documents):
        return examples
    return examples.take(np.argsort(np.asarray(documents), kind="stable"))


def can_be_drawn(documents: Sequence[int] | None, eligible: np.ndarray | None = None) -> bool:
    """Whether there are enough documents (of eligible rows, [N] bool) for drawing them whole."""
    if documents is None:
        return False
    of_row = np.asarray(documents)
    return len(np.unique(of_row if eligible is None else of_row[eligible])) >= MIN_DOCUMENTS


def draw_documents(
    documents: Sequence[int], eligible: np.ndarray, wanted: Sequence[int], rng: np.random.Generator
) -> list[np.ndarray]:
    """Draws several disjoint sets of whole documents.

    Args:
        documents: of each row, [N].
        eligible: which rows count towards a set's size, [N] bool; a document without one is not
            drawn.
        wanted: the least number of eligible rows of each set. A document of more than the smallest
            of them is drawn only if there is no other.
        rng: fixes the draw.

    Returns:
        The rows of each set, ascending. At least one document is left over.
    """
    of_row = np.unique(np.asarray(documents), return_inverse=True)[1]
    sizes = np.bincount(of_row, weights=eligible)
    late = sizes > min(wanted)
    order = np.argsort(rng.random(len(sizes)) + late, kind="stable")
    left = [int(document) for document in order if sizes[document]]
    sets = []
    for position, least in enumerate(wanted):
        keep = len(wanted) - position  # for the sets that follow, and one that stays
        chosen: list[int] = []
        while len(left) > keep and (not chosen or sizes[chosen].sum() < least):
            chosen.append(left.pop(0))
        sets.append(np.flatnonzero(np.isin(of_row, chosen)))
    return sets


def share_of_documents(
    documents: Sequence[int], share: float, rng: np.random.Generator
) -> np.ndarray:
    """The rows, ascending, of the first documents of a random order that hold a share of them."""
    of_row = np.unique(np.asarray(documents), return_inverse=True)[1]
    sizes = np.bincount(of_row)
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    count = 1 + int(np.argmin(np.abs(reached - share * len(of_row))))
    return np.flatnonzero(np.isin(of_row, order[:count]))
