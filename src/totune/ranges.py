"""Where a search looks for an option's value: written beside the option's type.

    learning_rate: Annotated[Rate, Floats(2e-5, 5e-4, log=True)] = 1e-4

An option without a range is not searched. Ranges say nothing about which values are allowed: that
is the type's part, and what a person sets may lie outside.
"""

from collections.abc import Mapping
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


@dataclass(frozen=True)
class Times:
    """Numbers from `low` to `high` times the default, for options whose default follows from data.

    Each tenfold is as likely as the next.
    """

    low: float
    high: float

    def around(self, default: float) -> Floats | Ints:
        """The range about a default; whole numbers about a whole one."""
        low, high = self.low * default, self.high * default
        if not isinstance(default, int):
            return Floats(low, high, log=True)
        least = max(1, round(low))
        return Ints(least, max(least + 1, round(high)), log=True)


Limits: TypeAlias = Floats | Ints | Choices
Range: TypeAlias = Limits | Times


def ranges_of(member: type) -> dict[str, Range]:
    """The ranges of a member's options, as declared, by name, in the order of its fields."""
    hints = get_type_hints(member, include_extras=True)
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        name: range_
        for name, facts in found.items()
        for range_ in facts
        if isinstance(range_, Range)
    }


def ranges_about(options: Mapping[str, Any], member: type) -> dict[str, Limits]:
    """Where a search looks for the options of a member whose defaults are `options`."""
    return {
        name: range_.around(options[name]) if isinstance(range_, Times) else range_
        for name, range_ in ranges_of(member).items()
    }


def contains(range_: Limits, value: Any) -> bool:
    """Whether a value is one that a search could find."""
    if isinstance(range_, Choices):
        return value in range_.values
    return isinstance(value, int | float) and range_.low <= value <= range_.high
