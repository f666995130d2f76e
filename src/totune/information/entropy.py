"""The entropy of discrete values, from their counts."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.errors import DataError

Symbols = Iterable[Any]  # hashable values, or rows of them


def label_entropy(labels: Symbols) -> float:
    """H(Y) in bits, the sum of -p log2 p over the shares p of each label (Shannon 1948, sec. 6).

    The most that any variable can tell about the labels.

    Args:
        labels: [N] hashable values, or [N, e], where a row is one value.

    Raises:
        DataError: if there is no label, or one is NaN.
    """
    counts = np.bincount(label_numbers(labels, "labels"))
    shares = counts / counts.sum()
    return float(abs((shares * np.log2(shares)).sum()))  # abs: no -0.0


def label_numbers(symbols: Symbols, name: str) -> NDArray[np.int64]:
    """Each value's number [N], in the order of first appearance.

    Args:
        symbols: [N] hashable values, or rows of them.
        name: what messages call them.

    Raises:
        DataError: if there is no value, or one is NaN.
    """
    numbers: dict[Hashable, int] = {}
    found = []
    values = symbols.tolist() if isinstance(symbols, np.ndarray) else symbols
    for row, value in enumerate(values, start=1):
        key = tuple(value) if isinstance(value, list | np.ndarray) else value
        if _is_nan(key):
            raise DataError(f"{name}: row {row:,} (counted from 1) holds NaN. Leave it out.")
        found.append(numbers.setdefault(key, len(numbers)))
    if not found:
        raise DataError(f"{name}: there is no row. Information needs at least one observation.")
    return np.array(found, dtype=np.int64)


def _is_nan(value: Any) -> bool:
    return any(map(_is_nan, value)) if isinstance(value, tuple) else bool(value != value)
