"""What a person types as values: durations, seeds, lists, `name=value`."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from totune.errors import ConfigError

_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str) -> float:
    """Seconds from "90s", "30m", "1.5h" or "1h30m"; a bare number is seconds.

    Raises:
        ConfigError: when `text` is not a duration.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)(min|[smhd]?)", text.strip().lower())
    if not parts or "".join(map("".join, parts)) != text.strip().lower():
        raise ConfigError(f"{text!r} is not a duration; write one like 90s, 30m or 1h30m.")
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_seeds(text: str) -> int | list[int]:
    """How many seeds ("5"), or which ("3,7,11"; "3," is seed 3 alone).

    Raises:
        ConfigError: when `text` is neither.
    """
    if not re.fullmatch(r"\d+(,\d+)*,?", text.replace(" ", "")):
        raise ConfigError(f"--seeds {text!r} is neither a number of seeds nor a list like 3,7,11.")
    numbers = [int(number) for number in text.split(",") if number.strip()]
    return numbers if "," in text else numbers[0]


def parse_layers(text: str) -> str | list[int]:
    """Numbers of layers ("0,6,12"), or a word ("top", "all") as it is.

    Raises:
        ConfigError: when `text` is neither.
    """
    words = parse_names(text)
    if words and all(word.isdecimal() for word in words):
        return [int(word) for word in words]
    if text not in ("top", "all"):
        raise ConfigError(f"--layers {text!r} is none of top, all, or numbers such as 0,6,12.")
    return text


def parse_search(text: str) -> dict[str, Any]:
    """The budget of a search: a number of trials ("20"), or a time ("10m", "600s").

    Raises:
        ConfigError: when `text` is neither, or nothing.
    """
    remedy = "write a number of trials like 20, or a time for each strategy like 10m"
    if re.fullmatch(r"\d+", text.strip()):
        if int(text) == 0:
            raise ConfigError(f"--search {text!r} leaves nothing to try; {remedy}.")
        return {"search_trials": int(text)}
    try:
        return {"search_seconds": parse_duration(text)}
    except ConfigError:
        raise ConfigError(f"--search {text!r} is no budget; {remedy}.") from None


def parse_names(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE` as a mapping; values are JSON (numbers, true, null, lists), else text.

    Raises:
        ConfigError: with every pair that is not one.
    """
    faults = [
        f"--set {pair!r} is not of the form NAME=VALUE."
        for pair in pairs
        if not re.fullmatch(r"[\w.-]+=.*", pair, flags=re.DOTALL)
    ]
    if faults:
        raise ConfigError(faults)
    return {name: _value(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
