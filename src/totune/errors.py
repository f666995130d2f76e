"""What can go wrong, as few kinds as the exit codes need.

Every error a user can cause is a `TotuneError`; the command line prints its message (never a
traceback) and ends with its `exit_code`.
"""

from collections.abc import Sequence


class TotuneError(Exception):
    """A fault that one clear message explains: the value, the limit, the place, the remedy."""

    exit_code = 2


class DataError(TotuneError):
    """The data cannot be used; the message names the file and, where there is one, the row."""


class ModelError(TotuneError):
    """An encoder or a trained model cannot be found, read or trusted."""


class ConfigError(TotuneError):
    """One or more settings are wrong.

    Args:
        faults: every fault found, not only the first, each a full sentence.
    """

    def __init__(self, faults: Sequence[str] | str) -> None:
        self.faults = [faults] if isinstance(faults, str) else list(faults)
        super().__init__("\n".join(self.faults))


class RunError(TotuneError):
    """A run failed while it trained; finished runs are kept."""

    exit_code = 1
