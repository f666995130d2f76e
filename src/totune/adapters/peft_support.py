"""What every insert of PEFT's needs: plain configurations, clear refusals, weights that fit."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

from torch import Tensor

from totune.encoders.adapter_modules import misfits
from totune.errors import ConfigError, ModelError
from totune.text import first_line


def plain(value: Any) -> Any:
    """A configuration's value as JSON: sets as sorted lists, members of an enum as their values."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Tells what PEFT refuses, or ignores of the options, as `ConfigError`.

    PEFT's remarks on its own ways are kept from the user.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "(?s).*(not match any|was matched|were excluded)")
            yield
    except Exception as error:  # PEFT's many methods raise many kinds, all faults of the options
        raise ConfigError(f"{what}: {first_line(error)}.") from None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keeps back PEFT's warnings, which are about the ways of its own files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_fit(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Compares names and shapes.

    Raises:
        ModelError: with the first difference.
    """
    fault = misfits(weights, expected, "its weights")
    if fault:
        raise ModelError(
            f"The weights do not fit what PEFT has put into this encoder: {fault}. "
            "Insert with the configuration, and into the encoder, that they were saved with."
        )
