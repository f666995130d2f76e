"""Against SciPy's Jensen-Shannon distance, whose square is the divergence."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from totune.information import jensen_shannon


@pytest.mark.parametrize("seed", range(8))
def test_jensen_shannon(seed: int):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(10_000, 0.05 * (seed + 1)), 2)
    p[:1000] = 0
    p /= p.sum()
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-12)
