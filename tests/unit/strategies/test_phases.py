"""Groups, schedules and stops: plain data with pure functions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import get_linear_schedule_with_warmup

from totune.strategies.phases import (
    Constant,
    Epochs,
    EpochScores,
    Gap,
    Group,
    LinearDecay,
    Plateau,
    SlantedTriangular,
    Stretch,
)

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
    assert {name for name in names if Group(pattern, 0.1).covers(name, "weight")} == parts


@given(SCORES, st.integers(1, 12))
def test_epochs_ends_after_its_number(scores: list[float], number: int) -> None:
    assert bool(Epochs(number).ends(EpochScores(scores))) == (len(scores) >= number)


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
    assert bool(Plateau(6, patience=2).ends(EpochScores(scores))) == ends


@given(SCORES, st.integers(1, 5))
def test_plateau_waits_for_its_patience(scores: list[float], patience: int) -> None:
    if Plateau(100, patience).ends(EpochScores(scores)):
        assert max(scores[-patience:]) <= max(scores[:-patience])
    elif len(scores) > patience:
        assert max(scores[-patience:]) > max(scores[:-patience])


@given(st.integers(1, 300), st.floats(0, 1), st.floats(1, 64))
def test_slanted_triangular_rises_to_the_peak_and_falls(
    total: int, cut_frac: float, ratio: float
) -> None:
    schedule = SlantedTriangular(cut_frac, ratio)
    factors = [schedule.factor(step, total) for step in range(total)]
    assert all(1 / ratio - 1e-12 <= factor <= 1 + 1e-12 for factor in factors)
    peak = factors.index(max(factors))
    assert factors[:peak] == sorted(factors[:peak])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    if 0 < int(cut_frac * total):
        assert max(factors) == pytest.approx(1)


@pytest.mark.parametrize("whole", [Constant(), LinearDecay(0.1), SlantedTriangular(0.1, 32)])
@pytest.mark.parametrize("epochs", [(1, 1, 1, 4), (2, 2, 2, 1), (1, 3)])
def test_stretches_make_up_the_whole(whole: LinearDecay, epochs: tuple[int, ...]) -> None:
    per_epoch, total, found = 7, sum(epochs), []
    for number, own in enumerate(epochs):
        stretch = Stretch(whole, sum(epochs[:number]) / total, own / total)
        found += [stretch.factor(step, own * per_epoch) for step in range(own * per_epoch)]
    assert found == [whole.factor(step, total * per_epoch) for step in range(total * per_epoch)]


@pytest.mark.parametrize(
    ("train", "dev", "why"),
    [
        ([], [], ""),
        ([0.6], [0.6], ""),
        ([0.6, 0.75], [0.6, 0.7], ""),  # as far as it may lead
        ([0.6, 0.8], [0.6, 0.7], "train leads dev by 0.100, more than 0.05"),
        ([0.8, 0.7], [0.6, 0.7], ""),  # the gap has closed again
        ([0.7, 0.7, 0.7], [0.7, 0.68, 0.68], "dev has not improved for 2 epochs"),
        ([0.5, 0.6, 0.7, 0.8], [0.5, 0.6, 0.7, 0.8], "its 4 epochs are done"),
    ],
)
def test_gap_says_why_it_stops(train: list[float], dev: list[float], why: str) -> None:
    tolerance = 0.0500001  # 0.75 - 0.7 is above 0.05 in floating point
    stop = Gap(4, tolerance, gap_patience=1, patience=2)
    assert stop.ends(EpochScores(dev, train)).replace("0.0500001", "0.05") == why


def test_gap_waits_for_its_patience() -> None:
    stop = Gap(9, 0.05, gap_patience=2, patience=9)
    assert not stop.ends(EpochScores([0.6, 0.6], [0.6, 0.9]))
    assert not stop.ends(EpochScores([0.6, 0.6, 0.8], [0.7, 0.6, 0.9]))
    assert stop.ends(EpochScores([0.6, 0.6, 0.7], [0.6, 0.7, 0.9])).startswith("train leads")


@pytest.mark.parametrize(
    ("train", "dev", "epoch"),
    [
        ([0.6, 0.9], [0.6, 0.7], 0),  # the epoch that broke the tolerance has the best dev score
        ([0.6, 0.7, 0.66], [0.6, 0.68, 0.65], 1),
        ([0.6, 0.6, 0.9], [0.6, 0.6, 0.7], 0),
        ([0.9, 0.9], [0.6, 0.7], 0),  # none within it
        ([0.9, 0.9, 0.65], [0.6, 0.7, 0.62], 2),
    ],
)
def test_gap_restores_the_best_epoch_within_its_tolerance(
    train: list[float], dev: list[float], epoch: int
) -> None:
    assert Gap(9, 0.05).best(EpochScores(dev, train)) == epoch
    assert (
        Plateau(9).best(EpochScores(dev)) == Epochs(9).best(EpochScores(dev)) == dev.index(max(dev))
    )


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 2), min_size=1, max_size=12))
def test_what_is_restored_is_the_newest_epoch_or_what_it_was(pairs: list[tuple[int, int]]) -> None:
    """So a trainer need keep one epoch alone."""
    train, dev = zip(*pairs, strict=True)
    before = 0
    for count in range(1, len(pairs) + 1):
        now = Gap(99, tolerance=5).best(EpochScores(dev[:count], train[:count]))
        assert now in (before, count - 1)
        before = now


def test_stops_say_why() -> None:
    assert Epochs(2).ends(EpochScores([0.1, 0.2])) == "its 2 epochs are done"
    assert Plateau(5, 1).ends(EpochScores([0.2, 0.1])) == "dev has not improved for 1 epoch"
    assert Plateau(2, 2).ends(EpochScores([0.1, 0.2])) == "its 2 epochs are done"


def test_a_group_covers_the_kinds_it_names() -> None:
    group = Group("layer.*", 0.1, kinds=("norm", "bias"))
    assert [group.covers("layer.1", kind) for kind in ("norm", "bias", "weight", "inserted")] == [
        *(True, True, False, False)
    ]
    assert not group.covers("head", "bias")
