"""What long work reports to the person who waits: silent by default, drawn by the command line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """A running bar; `advance` counts finished units."""

    def advance(self, count: int = 1) -> None: ...


class _Silent:
    def advance(self, count: int = 1) -> None:
        """Counts nothing."""


class Progress:
    """The silent observer; a subclass draws.

    `say` gets one finished sentence (a note); `warn` gets what may spoil the result; `bar` shows
    how far work is.
    """

    def say(self, message: str) -> None:
        """Tells a fact worth knowing."""

    def warn(self, message: str) -> None:
        """Tells what may spoil the result."""

    @contextmanager
    def bar(self, description: str, total: int | None, unit: str = "") -> Iterator[Bar]:
        """A bar of `total` units (None: nobody knows how many) while the block runs.

        With a `unit` ("rows") it also shows how many are done in a second.
        """
        yield _Silent()

    def table(self, rows: Sequence[Mapping[str, str]]) -> None:
        """The state of a study: one row per strategy, formatted, columns in order."""
