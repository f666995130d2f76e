"""Against SciPy's Jensen-Shannon distance, whose square is the divergence."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from totune.information import jensen_shannon
from totune.information.divergence import LogBase


@pytest.mark.parametrize(("base", "number"), [(2, 2), ("e", np.e)])
@pytest.mark.parametrize("seed", range(8))
def test_jensen_shannon(seed: int, base: LogBase, number: float):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(10_000, 0.05 * (seed + 1)), 2)
    p[:1000] = 0
    p /= p.sum()
    expected = jensenshannon(p, q, base=number) ** 2
    assert jensen_shannon(p, q, base) == pytest.approx(expected, abs=1e-12)
