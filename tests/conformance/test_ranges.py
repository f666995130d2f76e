"""Every option that a search may try: its range fits its type, and holds its default."""

from typing import Any

import pytest

from totune.baselines.base import BASELINES
from totune.heads.base import HEADS
from totune.ranges import Choices, Limits, contains, ranges_about
from totune.registry import Registry, options_of
from totune.strategies.base import STRATEGIES

# They have no options, or none that has several sensible values.
WITHOUT = {"majority", "most-frequent-tag"}
REGISTRIES: tuple[Registry[Any], ...] = (STRATEGIES, HEADS, BASELINES)
OPTIONS = [
    pytest.param(registry, name, option, range_, id=f"{name}.{option}")
    for registry in REGISTRIES
    for name in registry.names()
    for option, range_ in ranges_about(
        options_of(registry.create(name)), registry.get(name)
    ).items()
]
each_option = pytest.mark.parametrize(("registry", "name", "option", "range_"), OPTIONS)


def ends(range_: Limits) -> tuple[Any, ...]:
    """The values that are furthest apart; all where there is no order."""
    return range_.values if isinstance(range_, Choices) else (range_.low, range_.high)


def test_every_member_with_options_has_something_to_search() -> None:
    found = {name for registry in REGISTRIES for name in registry.names()}
    searched = {parameter.values[1] for parameter in OPTIONS}
    assert found - searched == WITHOUT


@each_option
def test_the_default_lies_in_its_range(
    registry: Registry[Any], name: str, option: str, range_: Limits
) -> None:
    assert contains(range_, options_of(registry.create(name))[option])


@each_option
def test_what_a_range_holds_is_allowed(
    registry: Registry[Any], name: str, option: str, range_: Limits
) -> None:
    assert len(set(ends(range_))) > 1
    for value in ends(range_):
        assert options_of(registry.create(name, {option: value}))[option] == value


def test_logarithmic_ranges_begin_above_zero() -> None:
    ranges = [parameter.values[3] for parameter in OPTIONS]
    logarithmic = [r for r in ranges if not isinstance(r, Choices) and r.log]
    assert logarithmic
    assert all(0 < range_.low < range_.high for range_ in logarithmic)
