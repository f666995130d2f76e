import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from totune.statistics import adjusted_level, holm, steps_p
from totune.statistics.selection import adjusted_p, range_p

tests = st.lists(st.tuples(st.floats(1e-12, 1), st.floats(1, 1e4)), min_size=1, max_size=8)


@pytest.mark.parametrize("df", [1.6, 3.2, 20.0, 500.0, np.inf])
@pytest.mark.parametrize("groups", [2, 3, 8])
def test_the_range_is_studentized(groups: int, df: float):
    for t in (1.0, 2.5, 4.3):
        expected = stats.studentized_range.sf(t * np.sqrt(2), groups, df)
        found = range_p(2 * stats.t.sf(t, df), groups, df)
        assert found == pytest.approx(expected, abs=1e-4)


@settings(deadline=None, max_examples=40)
@given(tests)
def test_steps_are_holms_and_never_less(found: list[tuple[float, float]]):
    p, dfs = ([each[at] for each in found] for at in (0, 1))
    adjusted = steps_p(p, dfs)
    assert (np.array(adjusted) >= holm(p) - 1e-9).all()
    order = np.argsort(p)
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()
    assert steps_p(p[::-1], dfs[::-1]) == pytest.approx(adjusted[::-1]) or len(set(p)) < len(p)


@pytest.mark.parametrize("df", [1.5, 6.0, np.inf])
@pytest.mark.parametrize("rivals", [1, 2, 7])
def test_the_level_is_where_the_first_step_counts(rivals: int, df: float):
    level = adjusted_level(0.05, rivals, df)
    assert adjusted_p(level, rivals, df) == pytest.approx(0.05)
    assert level <= 0.05 / rivals * (1 + 1e-9)


def test_one_rival_needs_no_allowance():
    assert adjusted_level(0.05, 1, 4.0) == 0.05
    assert steps_p([0.03], [4.0]) == [0.03]


def test_picking_the_best_of_equals_errs_as_rarely_as_promised():
    """Holm's steps over the rivals alone err in 9% of these."""
    rng, groups, studies = np.random.default_rng(0), 8, 20_000
    means = rng.normal(size=(studies, groups))
    gaps = (means.max(axis=1) - means.min(axis=1)) / np.sqrt(2)
    p = 2 * stats.norm.sf(gaps)
    assert (p <= 0.05 / (groups - 1)).mean() > 0.08
    assert (p <= adjusted_level(0.05, groups - 1, np.inf)).mean() == pytest.approx(0.05, abs=0.005)
