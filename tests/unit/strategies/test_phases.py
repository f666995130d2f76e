"""Groups, schedules and stops: plain data with pure functions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import get_linear_schedule_with_warmup

from totune.strategies.phases import Constant, Epochs, Group, LinearDecay, Plateau

SCORES = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.parametrize("total", [1, 2, 7, 40, 101])
@pytest.mark.parametrize("ratio", [0.0, 0.06, 0.1, 0.5, 1.0])
def test_linear_decay_is_that_of_transformers(total: int, ratio: float) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = get_linear_schedule_with_warmup(optimizer, round(ratio * total), total)
    for step in range(total + 2):
        ours = 0.3 * LinearDecay(ratio).factor(step, total)
        assert ours == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-15), step
        optimizer.step()
        theirs.step()


@given(st.floats(0, 1), st.integers(1, 500))
def test_linear_decay_stays_between_nothing_and_the_peak(ratio: float, total: int) -> None:
    factors = [LinearDecay(ratio).factor(step, total) for step in range(total + 1)]
    assert all(0 <= factor <= 1 for factor in factors)
    peak = factors.index(max(factors))
    assert factors[:peak] == sorted(factors[:peak])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    assert factors[-1] == 0 or ratio * total > total - 1


def test_constant() -> None:
    assert {Constant().factor(step, 9) for step in range(12)} == {1.0}


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("layer.*", {"layer.1", "layer.11"}),
        ("layer.1", {"layer.1"}),
        ("head", {"head"}),
        ("*", {"layer.1", "layer.11", "head", "Head"}),
    ],
)
def test_a_group_covers_what_its_pattern_matches(pattern: str, parts: set[str]) -> None:
    names = ("layer.1", "layer.11", "head", "Head")
    assert {name for name in names if Group(pattern, 0.1).covers(name)} == parts


@given(SCORES, st.integers(1, 12))
def test_epochs_ends_after_its_number(scores: list[float], number: int) -> None:
    assert Epochs(number).ends(scores) == (len(scores) >= number)


@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ([], False),
        ([0.5], False),
        ([0.5, 0.4], False),
        ([0.5, 0.4, 0.4], True),
        ([0.5, 0.5, 0.5], True),  # as good as the best is no rise
        ([0.5, 0.4, 0.6], False),
        ([0.5, 0.4, 0.6, 0.5, 0.5], True),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], True),  # the limit
    ],
)
def test_plateau(scores: list[float], ends: bool) -> None:
    assert Plateau(6, patience=2).ends(scores) == ends


@given(SCORES, st.integers(1, 5))
def test_plateau_waits_for_its_patience(scores: list[float], patience: int) -> None:
    if Plateau(100, patience).ends(scores):
        assert max(scores[-patience:]) <= max(scores[:-patience])
    elif len(scores) > patience:
        assert max(scores[-patience:]) > max(scores[:-patience])
