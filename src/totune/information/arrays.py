"""What estimators ask of the arrays they are given."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from totune.errors import DataError

_NUMBERS = "biuf"  # kinds of dtype: truth values, integers, floats


def as_matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    """Finite numbers [N, d] in the type they came in; a vector becomes one column.

    Args:
        values: [N] or [N, d].
        name: what messages call them.

    Raises:
        DataError: if they are no numbers, have no row or no column, or hold NaN or infinity.
    """
    found = np.asarray(values)
    if found.dtype.kind not in _NUMBERS:
        raise DataError(
            f"{name} must hold numbers, and holds {found.dtype}. Number the labels first, as "
            "numpy.unique(labels, return_inverse=True) does."
        )
    matrix = found[:, None] if found.ndim == 1 else found
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(
            f"{name} must be [rows] or [rows, columns] with at least one of each, "
            f"and is {list(found.shape)}."
        )
    _check_finite(matrix, name)
    return matrix


def check_same_rows(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Two sides of a pair have a row each.

    Raises:
        DataError: if one side is longer.
    """
    if len(x) != len(y):
        raise DataError(
            f"x has {len(x):,} rows and y {len(y):,}. Both need one row per observation."
        )


def _check_finite(matrix: NDArray[Any], name: str) -> None:
    finite = np.isfinite(matrix)
    if finite.all():
        return
    bad = np.argwhere(~finite)
    row, column = bad[0]
    raise DataError(
        f"{name} holds {len(bad):,} values that are not finite, the first {matrix[row, column]} in "
        f"row {row + 1:,}, column {column + 1:,} (counted from 1). Leave such rows out, or compute "
        "them in a wider type."
    )
