import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from totune.statistics.ranks import rank_correlation

SMALL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=4).filter(
    lambda pairs: all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
)


@settings(max_examples=30, deadline=None)
@given(SMALL)
def test_it_is_spearmans_rho_with_the_share_of_orders_as_far_from_0(pairs: list[tuple[int, int]]):
    first, second = map(list, zip(*pairs, strict=True))
    found = rank_correlation(first, second)
    assert found.rho == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
    every = [spearmanr(first, order).statistic for order in itertools.permutations(second)]
    assert found.p == pytest.approx(np.mean(np.abs(every) >= abs(found.rho) - 1e-9))
    assert found.exact


def test_five_of_a_kind_need_a_perfect_ranking_and_four_never_have_enough():
    five = rank_correlation([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
    assert (five.rho, five.p, five.needed) == (pytest.approx(1), 2 / 120, pytest.approx(1))
    assert rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4]).p == pytest.approx(10 / 120)
    four = rank_correlation([1, 2, 3, 4], [4, 3, 2, 1])
    assert (four.p, four.needed) == (2 / 24, None)


def test_above_eight_orders_are_drawn_the_same_ones_each_time():
    random = np.random.default_rng(0)
    first = random.normal(size=30)
    second = first + random.normal(size=30)
    found = rank_correlation(list(first), list(second), seed=1)
    expected: SimpleNamespace = spearmanr(first, second)
    assert not found.exact
    assert found.rho == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, abs=0.003)
    assert found.needed == pytest.approx(0.361, abs=0.02)  # the table's value for n = 30
    assert found == rank_correlation(list(first), list(second), seed=1)


@pytest.mark.parametrize("second", [[1, 1, 1], [1, 2], [1, 2, float("nan")]])
def test_what_cannot_be_ranked_is_refused(second: list[float]):
    with pytest.raises(ValueError, match="a rank correlation needs"):
        rank_correlation([1, 2, 3], second)
