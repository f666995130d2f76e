"""Values of which some are not known, which is None."""

import math
from collections.abc import Sequence
from statistics import fmean


def finite(value: float | None) -> float | None:
    """The value, or None where it is no number."""
    return float(value) if value is not None and math.isfinite(value) else None


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
