"""How a job ends in another process."""

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """It is done; what it returned."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """It ended with a fault that is no run's own: the whole study is to end with it."""

    error: Exception


def outcome_of(do: Callable[[], Any]) -> Result | Raised:
    """Does something; what it raises becomes a value that can be pickled."""
    try:
        return Result(do())
    except Exception as error:
        return Raised(_portable(error))


def _portable(error: Exception) -> Exception:
    """The same with its traceback as a note; of the base's type if it cannot be pickled."""
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # picklers and constructors raise many kinds
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
