"""Counts, sizes, times and errors as words, for messages and reports, without secrets."""

import math
import re
from collections.abc import Sequence

from totune.errors import ConfigError

_POWERS = ["", "k", "m", "g", "t"]


def plural(count: int, noun: str) -> str:
    """The noun of a count: "row" of one, "rows" of more or none."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 row", "2,000 rows"."""
    return f"{count:,} {plural(count, noun)}"


def listed(numbers: Sequence[int], unit: str, most: int = 5) -> str:
    """The first few of `numbers` with their unit: "lines 3, 9 and 40 more"."""
    shown = ", ".join(str(number) for number in numbers[:most])
    more = f" and {len(numbers) - most:,} more" if len(numbers) > most else ""
    return f"{plural(len(numbers), unit)} {shown}{more}"


def format_duration(seconds: float) -> str:
    """A time as people say it: "0.42 s", "12 s", "3 min 20 s", "1 h 5 min"."""
    if seconds < 59.5:
        return f"{_significant(seconds, 2)} s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def format_bytes(count: float) -> str:
    """A number of bytes in units of 1000, with three digits: "0 B", "3.08 kB", "90.9 MB"."""
    if count < 999.5:
        return f"{round(count)} B"
    size, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    return f"{_significant(size, 3)} {unit}"


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


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without the stop at its end; its type if it has none.

    A `KeyError`'s message would stand in quotes, so what it was raised with is taken.
    """
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(message).strip().partition("\n")[0].rstrip(".: ") or type(error).__name__


_USER_INFO = re.compile(r"(?<=://)[^\s\"'<>]*@")
_KEYS = "password|passwd|pwd|pass|passphrase|token|secret|signature|credential"
_QUERY = re.compile(rf"([?&;][\w.-]*(?:{_KEYS}|key)[\w.-]*=)[^&;#\s\"'<>]+", re.IGNORECASE)
_TOKENS = re.compile(r"\b(hf_|github_pat_|gh[opsu]_|local-|sk-|AKIA)[A-Za-z0-9_-]{16,}")


def hide_secrets(text: str) -> str:
    """The same with *** for what lets somebody in.

    That is the user info of addresses (whoever forgets to quote an @ in a password is covered), the
    keys in their queries, and the tokens of the hub and of other services.
    """
    text = _USER_INFO.sub("***@", text)
    return _TOKENS.sub(r"\1***", _QUERY.sub(r"\1***", text))


def _significant(value: float, digits: int) -> str:
    """At most so many significant digits, without exponent; whole numbers are not cut."""
    rounded = float(f"{value:.{digits}g}")
    decimals = 0 if rounded == 0 else max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{decimals}f}"
