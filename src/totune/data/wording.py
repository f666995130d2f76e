"""Counts and places in words, for messages."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 row", "2,000 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(numbers: Sequence[int], unit: str, most: int = 5) -> str:
    """Names the first few of `numbers`: "lines 3, 9 and 40 more"."""
    shown = ", ".join(str(number) for number in numbers[:most])
    more = f" and {len(numbers) - most:,} more" if len(numbers) > most else ""
    return f"{unit}{'s' if len(numbers) > 1 else ''} {shown}{more}"
