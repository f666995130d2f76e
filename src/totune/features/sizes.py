"""Sizes in bytes, as people write them."""

import math
import re

from totune.errors import ConfigError

_POWERS = ["", "k", "m", "g", "t"]


def parse_size(text: str) -> int:
    """Bytes from "20GB", "1.5 GiB", "500M" or "0"; units of 1000, with an "i" of 1024.

    Raises:
        ConfigError: when `text` is not a size.
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if not match or (match[3] and not match[2]):
        raise ConfigError(f"{text!r} is not a size; write one like 500MB, 20GB or 1.5GiB.")
    unit = math.pow(1024 if match[3] else 1000, _POWERS.index(match[2]))
    return math.floor(float(match[1]) * unit)
