"""Numbers as a person reads them: units, few digits, a dash for what is not known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from totune.metrics import METRICS
from totune.text import format_bytes, format_duration

MISSING = "–"

_NAMES = {
    "f1": "F1",
    "matthews": "Matthews correlation",
    "balanced-accuracy": "balanced accuracy",
    "macro-f1": "macro F1",
    "micro-f1": "micro F1",
    "weighted-f1": "weighted F1",
    "roc-auc": "ROC AUC",
    "pr-auc": "PR AUC",
    "log-loss": "log loss",
    "calibration-error": "calibration error",
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "mse": "mean squared error",
    "span-f1": "span F1",
    "span-precision": "span precision",
    "span-recall": "span recall",
    "token-accuracy": "token accuracy",
    "token-f1": "token F1",
    "exact-match": "exact match",
}
_OF_LABELS = ("precision", "recall")  # of each of several labels, "precision:joy"


def is_bounded(metric: str) -> bool:
    """Whether a metric is shown as points (x 100); one that nobody knows keeps its own scale."""
    name = metric.partition(":")[0]
    if name in _OF_LABELS:
        return True
    known = METRICS.get(metric, METRICS.get(name))
    return known is not None and known.unit == "points"


def metric_name(metric: str) -> str:
    """What a metric is called in a sentence: "accuracy", "F1", "Pearson correlation".

    One of a single type of spans, "f1:PER", is "F1 of PER"; a person's own is as they wrote it.
    """
    if metric in METRICS and ":" in metric:
        return metric
    name, _, part = metric.partition(":")
    label = _NAMES.get(name, name.replace("_", " "))
    return f"{label} of {part}" if part else label


def metric_label(metric: str) -> str:
    """What a metric is called in a heading: "Accuracy", "F1", "Pearson correlation"."""
    name = metric_name(metric)
    return name if name == metric and ":" in name else name[:1].upper() + name[1:]


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _minus(text: str) -> str:
    """With a true minus sign, and no sign on a zero."""
    if not any(digit in text for digit in "123456789"):
        return text.lstrip("+-")
    return text.replace("-", "−")


def significant(value: float | None, digits: int = 3) -> str:
    """`value` with at most `digits` significant digits, never in exponent notation."""
    if value is None or not _known(value):
        return MISSING
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return _minus(f"{value:,.{decimals}f}")


def score(metric: str, value: float | None, *, signed: bool = False) -> str:
    """A metric's value: points with one decimal if it is bounded, else three digits.

    Args:
        metric: the metric's name, which decides the scale.
        value: in the metric's own scale (accuracy 0.871), or None.
        signed: show a plus sign too (for differences).
    """
    if value is None or not _known(value):
        return MISSING
    if is_bounded(metric):
        return _minus(f"{100 * value:{'+' if signed else ''}.1f}")
    return ("+" if signed and value > 0 else "") + significant(value)


def spread(metric: str, value: float | None) -> str:
    """A standard deviation: on the metric's scale, two digits where the scale is open."""
    return score(metric, value) if is_bounded(metric) else significant(value, 2)


def interval(metric: str, low: float | None, high: float | None, *, signed: bool = False) -> str:
    """Both ends, as in "84.1 to 86.2", or a dash when either is unknown."""
    if low is None or high is None or not (_known(low) and _known(high)):
        return MISSING
    return f"{score(metric, low, signed=signed)} to {score(metric, high, signed=signed)}"


def tolerance(metric: str, value: float) -> str:
    """A limit in words: "0.5 points", or "0.02" on an open scale."""
    return f"{100 * value:g} points" if is_bounded(metric) else f"{value:g}"


def p_value(value: float | None) -> str:
    """Two digits, three below 0.1; never less than "<0.001"."""
    if value is None or not _known(value):
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def count(value: float | None) -> str:
    """A whole number with thousands separators."""
    return f"{round(value):,}" if value is not None and _known(value) else MISSING


def share(part: float, whole: float) -> str:
    """`part` of `whole` in percent: "100%", "4.2%", "<0.01%"."""
    if not (_known(part) and _known(whole)) or whole <= 0:
        return MISSING
    percent = 100 * part / whole
    if 0 < percent < 0.01:
        return "<0.01%"
    if part < whole and percent > 99.9:
        return ">99.9%"
    return "100%" if percent >= 99.95 else f"{significant(percent, 2 if percent < 10 else 3)}%"


def _scaled(value: float, units: Sequence[str], base: float) -> str:
    size = 0
    while size + 1 < len(units) and abs(value) >= 999.5 * base**size:
        size += 1
    return f"{significant(value / base**size)} {units[size]}"


def byte_size(value: float | None) -> str:
    """Bytes as `format_bytes` has them, or that they are not known."""
    return MISSING if value is None or not _known(value) else format_bytes(value)


def duration(seconds: float | None) -> str:
    """A time as `format_duration` has it, or that it is not known."""
    return MISSING if seconds is None or not _known(seconds) else format_duration(seconds)


def rate(value: float | None) -> str:
    """Examples per second, three digits at most below a thousand."""
    if value is None or not _known(value):
        return MISSING
    return significant(value) if value < 1000 else count(float(f"{value:.3g}"))


def plain(value: Any, name: str = "") -> str:
    """Any JSON value on one line; `name` ends in its unit ("..._bytes", "..._seconds")."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(_pair(str(key), item) for key, item in value.items() if item is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(item, name) for item in value) or MISSING
    return _number(value, name) if isinstance(value, (int, float)) else str(value)


def _pair(key: str, value: Any) -> str:
    """A number or version follows its name; a word is set off from it."""
    text = plain(value, key)
    return f"{key} {text}" if text[:1].isdigit() else f"{key}: {text}"


def _number(value: float, name: str) -> str:
    if name.endswith("bytes"):
        return byte_size(value)
    if name.endswith("seconds"):
        return duration(value)
    if isinstance(value, int):
        return str(value) if "seed" in name else f"{value:,}"
    return f"{value:g}"
