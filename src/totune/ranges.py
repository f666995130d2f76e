"""Where a search looks for an option's value: written beside the option's type.

    learning_rate: Annotated[Rate, Floats(2e-5, 5e-4, log=True)] = 1e-4

An option without a range is not searched. Ranges say nothing about which values are allowed: that
is the type's part, and what a person sets may lie outside.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints


@dataclass(frozen=True)
class Floats:
    """Numbers from `low` to `high`; with `log`, each tenfold is as likely as the next."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Ints:
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Choices:
    """One of some values: names, truth values, or numbers that have no order to learn from."""

    values: tuple[Any, ...]


Range: TypeAlias = Floats | Ints | Choices


def ranges_of(member: type) -> dict[str, Range]:
    """The ranges of a member's options, by name, in the order of its fields."""
    hints = get_type_hints(member, include_extras=True)
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        name: range_
        for name, facts in found.items()
        for range_ in facts
        if isinstance(range_, Floats | Ints | Choices)
    }


def contains(range_: Range, value: Any) -> bool:
    """Whether a value is one that a search could find."""
    if isinstance(range_, Choices):
        return value in range_.values
    return isinstance(value, int | float) and range_.low <= value <= range_.high
