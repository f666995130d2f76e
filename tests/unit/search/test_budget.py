"""How many trials belong to a search."""

import math
from collections.abc import Sequence

import pytest

from totune.search.queue import SearchBudget


@pytest.mark.parametrize("taken", [[], [1.0] * 20, [None]])
def test_a_number_of_trials_is_that_many(taken: Sequence[float | None]) -> None:
    assert SearchBudget(trials=8).covers(taken) == 8


@pytest.mark.parametrize(
    ("taken", "count"),
    [
        ([], math.inf),
        ([100.0], 1),
        ([4.0, 4.0], math.inf),
        ([4.0, 4.0, 2.0, 5.0], 3),
        ([4.0, None, 7.0], 3),
        ([4.0, 7.0, 7.0], 2),
        ([None, None], math.inf),
    ],
)
def test_a_time_ends_with_the_trial_that_uses_it_up(
    taken: Sequence[float | None], count: float
) -> None:
    assert SearchBudget(seconds=10.0).covers(taken) == count


def test_a_budget_as_plain_data() -> None:
    assert SearchBudget(trials=3).to_json() == {"trials": 3}
    assert SearchBudget(seconds=60.0).to_json() == {"seconds": 60.0}
