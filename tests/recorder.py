"""What long work says, kept; and the end of a process that is killed in its middle."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from totune.progress import Progress


class Killed(Exception):
    """Stands for the end of the process."""


class Recorder(Progress):
    """Keeps everything that it is given.

    Args:
        kill_at: the step, of all bars together, after which `Killed` is raised; 0 for the begin of
            the first bar.
    """

    def __init__(self, kill_at: int | None = None) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.bars: list[tuple[str, int | None]] = []  # descriptions and totals
        self.steps: list[int] = []  # the units of each
        self.tables: list[Sequence[Mapping[str, str]]] = []
        self._kill_at = kill_at

    def say(self, message: str) -> None:
        self.said.append(message)

    def warn(self, message: str) -> None:
        self.warned.append(message)

    @contextmanager
    def bar(self, description: str, total: int | None, unit: str = "") -> Iterator["Recorder"]:
        self.bars.append((description, total))
        self._end_if_due()
        yield self

    def advance(self, count: int = 1) -> None:
        self.steps.append(count)
        self._end_if_due()

    def table(self, rows: Sequence[Mapping[str, str]]) -> None:
        self.tables.append(rows)

    def _end_if_due(self) -> None:
        if len(self.steps) == self._kill_at:
            raise Killed
