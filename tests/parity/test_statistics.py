"""Against SciPy's and statsmodels' figures, worked out beforehand (`oracles/statistics.npz`)."""

from pathlib import Path

import numpy as np
import pytest

from totune.statistics import holm, paired_permutation, summary, welch

ORACLE = dict(np.load(Path(__file__).parent / "oracles" / "statistics.npz"))
ALTERNATIVES = ("two-sided", "greater", "less")


def expected(name: str) -> float:
    return float(ORACLE[name.replace("-", "_")])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("case", range(4))
def test_welch(case: int, alternative: str):
    found = welch(ORACLE[f"welch_a_{case}"], ORACLE[f"welch_b_{case}"], alternative)
    assert found.t == pytest.approx(expected(f"welch_t_{case}"), abs=1e-10)
    assert found.df == pytest.approx(expected(f"welch_df_{case}"), abs=1e-10)
    assert found.p == pytest.approx(expected(f"welch_p_{alternative}_{case}"), abs=1e-10)
    np.testing.assert_allclose(
        [found.low, found.high], ORACLE[f"welch_ci95_{case}"], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("case", range(5))
def test_paired_permutation(case: int, alternative: str):
    a, b = ORACLE[f"paired_a_{case}"], ORACLE[f"paired_b_{case}"]
    found = paired_permutation(a, b, alternative)
    assert found.exact
    assert found.statistic == pytest.approx(expected(f"permutation_statistic_{case}"), abs=1e-10)
    assert found.p == pytest.approx(expected(f"permutation_p_{alternative}_{case}"), abs=1e-10)


@pytest.mark.parametrize("case", range(5))
def test_the_interval_of_a_mean_is_that_of_the_paired_t_test(case: int):
    found = summary(ORACLE[f"paired_a_{case}"] - ORACLE[f"paired_b_{case}"])
    np.testing.assert_allclose(
        [found.low, found.high], ORACLE[f"paired_t_ci95_{case}"], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("case", range(6))
def test_holm(case: int):
    adjusted = holm(ORACLE[f"holm_p_{case}"])
    np.testing.assert_allclose(adjusted, ORACLE[f"holm_adjusted_{case}"], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(adjusted <= 0.05, ORACLE[f"holm_reject_05_{case}"])
