"""A small part of `python -m campaign`; all of it, though less often, in the slow tier."""

from collections.abc import Callable

import pytest
from campaign import damage, inputs, kills, places
from campaign.common import Place, Tally


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.make(tmp_path_factory.mktemp("campaign") / "place")


def test_a_kill_before_a_file_operation_and_a_full_disk_cost_no_result(place: Place) -> None:
    tally = kills.run(place, 2, seed=0, ways=("file operation", "full disk"))
    assert tally.tried == 2
    assert not tally.found, str(tally)


def test_dirty_inputs_are_read_or_refused(place: Place) -> None:
    tally = inputs.run(place, 24, seed=0)
    assert tally.tried >= 20
    assert not tally.found, str(tally)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "count"),
    [
        (kills.run, 40),
        (damage.run, 40),
        (inputs.run, 400),
        (places.together, 5),
        (places.permissions, 8),
    ],
)
def test_a_share_of_the_campaign(
    part: Callable[[Place, int, int], Tally], count: int, place: Place
) -> None:
    tally = part(place, count, 0)
    assert tally.tried >= count // 2
    assert not tally.found, str(tally)
