"""Mutual information from distances to nearest neighbours, on principal components.

To compare with EDGE. It has no cells and hardly any bias where x and y are independent, but the
number of observations it needs grows quickly with the dimension, so x is first reduced to its
principal components: its result is the information in these, a lower bound of that in x.

With one column it gives what scikit-learn's `mutual_info_classif` and `mutual_info_regression`
give for one feature, in bits in place of nats. Those look at one feature at a time; these
estimators look at all components at once.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from totune.errors import ConfigError, DataError
from totune.information.arrays import as_matrix, check_same_rows
from totune.information.entropy import label_numbers

Floats = NDArray[np.float64]

COMPONENTS = 5
_NOISE = 1e-10  # breaks ties, which both estimators rule out; times the size of the values


@dataclass(frozen=True)
class NearestNeighbours:
    """The estimators with their options.

    Attributes:
        n_components: principal components of x that are looked at; None for x as it is.
        n_neighbors: k, the neighbour whose distance is read. A larger one spreads less, and blurs.
        seed: of the noise that breaks ties.
    """

    n_components: int | None = COMPONENTS
    n_neighbors: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ConfigError with every option that is out of its range."""
        faults = [
            f"{name} is {value}; it must be at least {least}."
            for name, value, least in (
                ("n_components", self.n_components, 1),
                ("n_neighbors", self.n_neighbors, 1),
                ("seed", self.seed, 0),
            )
            if value is not None and value < least
        ]
        if faults:
            raise ConfigError(faults)

    def with_labels(self, x: ArrayLike, labels: Any) -> float:
        """I(X; Y) in bits for continuous x and discrete y (Ross 2014, eq. 2).

        Around each observation lies the ball up to its k-th nearest neighbour of the same label;
        the more observations of other labels it holds, the less x says. Distances are Euclidean.
        Where a label has k observations or fewer, the farthest of them takes the k-th one's place;
        a label with a single observation is left out. Less than 0, which chance can give, becomes
        0.

        Args:
            x: [N] or [N, d] numbers.
            labels: [N] hashable values.

        Raises:
            DataError: if x is not finite, the sides differ in length, or no label occurs twice.
        """
        values, classes = as_matrix(x, "x"), label_numbers(labels, "labels")
        check_same_rows(values, classes)
        sizes = np.bincount(classes)[classes]  # [N], of each observation's class
        if sizes.max() < 2:
            raise DataError(
                f"Each of the {len(classes):,} labels occurs once, so no observation has a "
                "neighbour of its own label. Group the labels, or treat them as numbers."
            )
        points = self._components(values, np.random.RandomState(self.seed))
        kept = sizes > 1
        return _ross(points[kept], classes[kept], self.n_neighbors)

    def with_numbers(self, x: ArrayLike, y: ArrayLike) -> float:
        """I(X; Y) in bits for continuous x and y (Kraskov, Stoegbauer, Grassberger 2004, eq. 8).

        The first of their two algorithms, with the maximum norm in every space. Less than 0
        becomes 0.

        Args:
            x: [N] or [N, d] numbers.
            y: [N] or [N, e] numbers, e usually 1; each column is scaled to deviation 1.

        Raises:
            DataError: if a value is not finite, the sides differ in length, or there are not more
                observations than `n_neighbors`.
        """
        values, targets = as_matrix(x, "x"), as_matrix(y, "y")
        check_same_rows(values, targets)
        if len(values) <= self.n_neighbors:
            raise DataError(
                f"{len(values)} observations are too few for n_neighbors={self.n_neighbors}: "
                f"at least {self.n_neighbors + 1} are needed."
            )
        generator = np.random.RandomState(self.seed)
        points = self._components(values, generator)
        scaled = targets.astype(np.float64)
        scaled = _with_noise(scaled / _positive(scaled.std(axis=0)), generator)
        return _kraskov(points, scaled, self.n_neighbors)

    def _components(self, values: NDArray[Any], generator: np.random.RandomState) -> Floats:
        """What is looked at [N, c] in one common scale, so that distances keep their shape."""
        points = values.astype(np.float64)
        if self.n_components is not None:
            points = principal_components(points, self.n_components)
        return _with_noise(points / _positive(points[:, 0].std()), generator)


def principal_components(x: NDArray[Any], count: int = COMPONENTS) -> Floats:
    """The first principal components of x [N, d]: [N, c], all where it has fewer than `count`."""
    if not np.ptp(x, axis=0).any():  # nothing varies: no principal component
        return np.zeros((len(x), 1))
    from sklearn.decomposition import PCA

    reduction = PCA(min(count, *x.shape), svd_solver="covariance_eigh")
    return np.asarray(reduction.fit_transform(x.astype(np.float64)))


def _ross(points: Floats, classes: NDArray[np.int64], n_neighbors: int) -> float:
    from scipy.special import digamma
    from sklearn.neighbors import KDTree

    n = len(points)
    radii, sizes, nearest = np.empty(n), np.empty(n), np.empty(n)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        k = min(n_neighbors, len(members) - 1)
        radii[members] = _radii(points[members], k, "euclidean")
        sizes[members], nearest[members] = len(members), k
    inside = KDTree(points).query_radius(points, radii, count_only=True)  # [N], itself included
    nats = digamma(n) + np.mean(digamma(nearest) - digamma(sizes) - digamma(inside))
    return _bits(nats)


def _kraskov(x: Floats, y: Floats, k: int) -> float:
    from scipy.special import digamma
    from sklearn.neighbors import KDTree

    radii = _radii(np.hstack([x, y]), k, "chebyshev")
    of_x, of_y = (
        KDTree(side, metric="chebyshev").query_radius(side, radii, count_only=True)
        for side in (x, y)
    )  # [N] each, itself included: n_x + 1 and n_y + 1 of the equation
    nats = digamma(k) + digamma(len(x)) - np.mean(digamma(of_x) + digamma(of_y))
    return _bits(nats)


def _radii(points: Floats, k: int, metric: str) -> Floats:
    """The largest radius [N] that leaves the k-th nearest other point outside."""
    from sklearn.neighbors import KDTree

    distances, _ = KDTree(points, metric=metric).query(points, k=k + 1)  # the first is itself
    radii: Floats = np.nextafter(distances[:, -1], 0)
    return radii


def _bits(nats: float) -> float:
    return max(0.0, float(nats) / math.log(2))


def _with_noise(values: Floats, generator: np.random.RandomState) -> Floats:
    size = np.maximum(1, np.abs(values).mean(axis=0))
    noisy: Floats = values + _NOISE * size * generator.standard_normal(values.shape)
    return noisy


def _positive(deviation: Any) -> Any:
    """The deviation, or 1 in place of 0."""
    return np.where(deviation > 0, deviation, 1.0)
