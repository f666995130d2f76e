"""EDGE, an estimator of mutual information by hashing (Noshad, Zeng and Hero 2018).

Both sides are projected to few dimensions, every dimension is cut into cells, and the information
is read from how often cells of the two sides meet: linear in the number of observations N. The
paper's algorithm leaves constants open; they are those of the authors' program.

An estimator to compare runs of equal N and d with, no ground truth. Pairs of cells that meet less
often than by chance count as slightly informative, so single-pass values are biased upwards; the
second pass widens the cells until little information becomes almost none (`FLOOR`). On continuous
x the value depends on the random projection by tenths of a bit: look at several seeds.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from totune.errors import ConfigError, DataError
from totune.information.arrays import as_matrix, check_same_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FLOOR = 0.001  # bits: the least that a pair of cells counts, so also the least estimate
LEAST_ROWS = 20  # fewer give no dimension: floor(log2(N / 10)) < 1

_MEMBERS = 10  # of the ensemble: cell widths from 1 to 1.1, shifts from 0 to 0.9 of a cell
_DRAWS = 500  # observations from which the spacing of a dimension is estimated
_CONSTANT = 1e-4  # a column with a smaller deviation is not scaled; also the least spacing
_SHRINK = 0.9  # of every smoothing factor
_BLOCK = 8192  # rows that are widened to float64 at once
_PACKED = 2**62  # cell numbers are packed into one integer below this


@dataclass(frozen=True)
class Projection:
    """One side of the pair in few dimensions.

    Attributes:
        weights: [d, d'], what projected it.
        values: [N, d'].
        distances: [d'], the mean distance to the k-th nearest observation in each dimension.
    """

    weights: Floats
    values: Floats
    distances: Floats

    def cells(self, gamma: float, member: int) -> Integers:
        """The number of each observation's cell [N], for one member (0-9) of the ensemble."""
        dims = self.values.shape[1]
        widths = 3 * dims * _SHRINK * gamma * self.distances
        widths = widths * (1 + 0.1 * member / (_MEMBERS - 1))
        return _number(np.floor((self.values + widths * member / _MEMBERS) / widths))


@dataclass(frozen=True)
class Edge:
    """The estimator with its options; the defaults are the authors'.

    Attributes:
        gamma: smoothing of x and of y: how wide cells are. Where y holds the numbers of many or
            rare classes, 1 puts some into one cell; 0.001 keeps them apart, at least in the first
            pass. Only while they are apart do their numbers not matter.
        upper_bound: the most bits that a pair of cells counts.
        passes: 2 estimates again with cells fitted to the first estimate; 1 does not.
        ensemble: how the ten estimates are joined.
        seed: of the random projections.
    """

    gamma: tuple[float, float] = (1.0, 1.0)
    upper_bound: float = 10.0
    passes: Literal[1, 2] = 2
    ensemble: Literal["median", "mean"] = "median"
    seed: int = 3334

    def __post_init__(self) -> None:
        """Raises ConfigError with every option that is out of its range."""
        faults = []
        if len(self.gamma) != 2 or not all(1e-6 <= value <= 1e6 for value in self.gamma):
            faults.append(f"gamma is {self.gamma}; it is two numbers of 1e-6 to 1e6, for x and y.")
        if not self.upper_bound > FLOOR:
            faults.append(f"upper_bound is {self.upper_bound}; it must be above {FLOOR} bits.")
        if self.passes not in (1, 2):
            faults.append(f"passes is {self.passes}; EDGE makes 1 or 2.")
        if self.ensemble not in ("median", "mean"):
            faults.append(f"ensemble is {self.ensemble!r}; it is 'median' or 'mean'.")
        if not 0 <= self.seed < 2**32:
            faults.append(f"seed is {self.seed}; it must lie between 0 and 2^32 - 1.")
        if faults:
            raise ConfigError(faults)

    def estimate(self, x: ArrayLike, y: ArrayLike) -> float:
        """I(X; Y) in bits.

        Args:
            x: [N] or [N, d] numbers.
            y: [N] class numbers or values, or [N, e].

        Raises:
            DataError: if there are fewer than 20 observations, the sides differ in length, or a
                value is not a finite number.
        """
        sides = self.project(x, y)
        found = self._join(self.members(*sides, self.gamma))
        if self.passes == 1:
            return found
        return self._join(self.members(*sides, self._refit(found)))

    def project(self, x: ArrayLike, y: ArrayLike) -> tuple[Projection, Projection]:
        """Both sides in few dimensions; raises what `estimate` does."""
        x, y = as_matrix(x, "x"), as_matrix(y, "y")
        check_same_rows(x, y)
        if len(x) < LEAST_ROWS:
            raise DataError(
                f"EDGE needs at least {LEAST_ROWS} observations, and there are {len(x)}."
            )
        # The older generator: its stream is part of what makes values comparable with others'.
        generator = np.random.RandomState(self.seed)
        return self._project(x, generator), self._project(y, generator)

    def members(self, x: Projection, y: Projection, gamma: tuple[float, float]) -> Floats:
        """The ensemble's ten estimates in bits, for cells of these widths."""
        found = [
            self._information(x.cells(gamma[0], member), y.cells(gamma[1], member))
            for member in range(_MEMBERS)
        ]
        return np.array(found)

    def _project(self, values: NDArray[Any], generator: np.random.RandomState) -> Projection:
        n, d = values.shape
        dims = min(d, int(math.log2(n / 10)))
        weights = generator.normal(size=(d, dims)) / (_deviations(values)[:, None] * math.sqrt(d))
        projected = np.concatenate([block @ weights for block in _blocks(values)])  # [N, d']
        drawn = np.random.RandomState(self.seed).randint(0, n, _DRAWS, dtype=np.int64)
        neighbours = _neighbours(n, dims)
        spacing = [_kth_distances(column, drawn, neighbours).mean() for column in projected.T]
        return Projection(weights, projected, np.array(spacing) + _CONSTANT)

    def _information(self, x: Integers, y: Integers) -> float:
        """The plug-in estimate over occupied pairs of cells, each bounded."""
        n, width = len(x), int(y.max()) + 1
        pairs, counts = np.unique(x * width + y, return_counts=True)
        of_x, of_y = np.bincount(x)[pairs // width], np.bincount(y)[pairs % width]
        bits = np.log2(n * counts / (of_x * of_y))
        return float((counts * np.clip(bits, FLOOR, self.upper_bound)).sum() / n)

    def _join(self, members: Floats) -> float:
        return float(np.median(members) if self.ensemble == "median" else np.mean(members))

    def _refit(self, bits: float) -> tuple[float, float]:
        """Smoothing for the second pass: the less information, the wider the cells."""
        factor = _SHRINK * 2 ** (-math.sqrt(2 * bits) + 0.5 / bits)
        return self.gamma[0] * factor, self.gamma[1] * factor


def _neighbours(n: int, dims: int) -> int:
    """Which nearest observation gives the spacing; the observation itself is the first."""
    share = 0.43 * n ** (2 / 3 + 0.17 * dims / (dims + 1))
    return int(share * math.exp(-1 / max(10_000, dims**4)))


def _blocks(values: NDArray[Any]) -> Iterator[Floats]:
    """Rows in float64, some at a time: hidden states of a corpus need no second, wider copy."""
    for start in range(0, len(values), _BLOCK):
        yield values[start : start + _BLOCK].astype(np.float64)


def _deviations(values: NDArray[Any]) -> Floats:
    """Population deviation of each column [d]; 1 for a column that hardly varies."""
    mean = values.mean(axis=0, dtype=np.float64)
    squares = sum(np.square(block - mean).sum(axis=0) for block in _blocks(values))
    deviations = np.sqrt(squares / len(values))
    return np.where(deviations < _CONSTANT, 1.0, deviations)


def _kth_distances(column: Floats, drawn: Integers, k: int) -> Floats:
    """Distance of each drawn observation to the k-th nearest of the column, itself the first.

    The k nearest of a sorted column stand side by side, so halving finds where they start: the
    first window of k values whose left end is no farther away than what follows its right end.
    """
    ordered, points = np.sort(column), column[drawn]
    low = np.zeros(len(drawn), dtype=np.int64)
    high = np.full(len(drawn), len(column) - k)
    while (low < high).any():
        middle = (low + high) // 2
        following = ordered[np.minimum(middle + k, len(column) - 1)]
        right = (low < high) & (points - ordered[middle] > following - points)
        low, high = (
            np.where(right, middle + 1, low),
            np.where(right, high, np.minimum(high, middle)),
        )
    return np.maximum(points - ordered[low], ordered[low + k - 1] - points)


def _number(cells: Floats) -> Integers:
    """Equal rows of cells [N, d'] get equal numbers [N], from 0 upwards without gaps."""
    key, size = np.zeros(len(cells), dtype=np.int64), 1
    for column in cells.T:
        places, span = _offsets(column)
        if size * span > _PACKED:
            key, size = _rank(key)
        key, size = key * span + places, size * span
    return _rank(key)[0]


def _offsets(column: Floats) -> tuple[Integers, int]:
    """Whole numbers as places in a range, and its size; ranks where the range is too wide."""
    places = column - column.min()
    widest = places.max()
    return (places.astype(np.int64), int(widest) + 1) if widest < 2**31 else _rank(column)


def _rank(values: NDArray[Any]) -> tuple[Integers, int]:
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64, copy=False), len(distinct)
