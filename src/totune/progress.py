"""What long work tells the person who waits: drawn by the command line, logged in Python.

Without a drawing subclass, notes and warnings go to the logger `totune`, which is silent until a
program configures it: `logging.basicConfig(level=logging.INFO)`.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

_LOGGER = logging.getLogger("totune")
_LOGGER.addHandler(logging.NullHandler())


class Bar(Protocol):
    """A running bar; `advance` counts finished units."""

    def advance(self, count: int = 1) -> None: ...


class _Silent:
    def advance(self, count: int = 1) -> None:
        """Counts nothing."""


class Progress:
    """Notes and warnings go to the logger `totune`; a subclass draws.

    `say` gets one finished sentence (a note); `warn` gets what may spoil the result; `bar` shows
    how far work is.
    """

    def say(self, message: str) -> None:
        """Tells a fact worth knowing."""
        _LOGGER.info(message)

    def warn(self, message: str) -> None:
        """Tells what may spoil the result."""
        _LOGGER.warning(message)

    @contextmanager
    def bar(self, description: str, total: int | None, unit: str = "") -> Iterator[Bar]:
        """A bar of `total` units (None: nobody knows how many) while the block runs.

        With a `unit` ("rows") it also shows how many are done in a second.
        """
        yield _Silent()

    def table(self, rows: Sequence[Mapping[str, str]]) -> None:
        """The state of a study: one row per strategy, formatted, columns in order."""
