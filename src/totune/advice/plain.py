"""Findings as JSON knows them."""

import math
from typing import Any


def finite(value: Any) -> Any:
    """`value` with None for every number in it that is not finite, and lists for tuples."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
