"""Progress drawn on standard error: bars on a terminal, plain lines in a log, nothing if quiet."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichBars
from rich.table import Table
from rich.text import Text

from totune.cli.interrupts import raise_lost_interrupt
from totune.cli.options import in_flags
from totune.progress import Bar, Progress
from totune.text import hide_secrets

UNKNOWN = "–"  # how a table shows a value that is not known yet
LOG_SECONDS = 10.0  # how often a bar writes a line where it cannot be drawn


class RichProgress(Progress):
    """Tells a person what happens; bars may nest, and vanish when they end.

    A context manager: the table of a study stays under the notes until the block ends.

    Args:
        quiet: say nothing at all.
        console: where to draw; standard error if None.
    """

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.quiet = quiet
        self._display: _Display | None = None
        self._rows: list[Mapping[str, str]] = []

    def __enter__(self) -> "RichProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def say(self, message: str) -> None:
        self._print(Text(hide_secrets(in_flags(message))))

    def warn(self, message: str) -> None:
        self._print(Text.assemble(("warning: ", "bold yellow"), hide_secrets(in_flags(message))))

    @contextmanager
    def bar(self, description: str, total: int | None, unit: str = "") -> Iterator[Bar]:
        if self.quiet or not self.console.is_terminal:
            yield _Lines(self, description, total, unit)
            return
        display = self._open()
        task = display.add_task(description, total=total, unit=unit)
        try:
            yield _Drawn(display, task)
        finally:
            display.refresh()
            display.remove_task(task)
            if not display.tasks and display.table is None:
                self._close()

    def table(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Draws the table under the notes; in a log, a line for each row that changed."""
        if not self.quiet and self.console.is_terminal:
            display = self._open()
            display.table = _drawn_table(rows)
            display.refresh()
            return
        for row in rows:
            if row not in self._rows and UNKNOWN not in row.values():
                self.say(_row_line(row))
        self._rows = list(rows)

    def _open(self) -> "_Display":
        if self._display is None:
            self._display = _Display(self.console)
            self._display.start()
        return self._display

    def _close(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None

    def _print(self, text: Text) -> None:
        raise_lost_interrupt()
        if not self.quiet:
            self.console.print(text, soft_wrap=True)


class _Display(RichBars):
    """What is redrawn in place: the table, if there is one, over the running bars."""

    table: Table | None = None

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, console=console, transient=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.table is not None:
            yield self.table
        yield self.make_tasks_table(self.tasks)


class _Rate(ProgressColumn):
    """Units per second, of bars that name their unit."""

    def render(self, task: Task) -> Text:
        unit = task.fields.get("unit")
        known = bool(unit) and task.speed is not None
        return Text(f"{task.speed:,.0f} {unit}/s" if known else "")


def _drawn_table(rows: Sequence[Mapping[str, str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(rows[0] if rows else ()):
        table.add_column(escape(name), justify="right" if place else "left")
    for row in rows:
        table.add_row(*map(escape, row.values()))
    return table


def _row_line(row: Mapping[str, str]) -> str:
    """A row in words: its first value, then every other with its name."""
    first, *others = row.items()
    return f"{first[1]}: " + ", ".join(f"{name} {value}" for name, value in others)


class _Drawn:
    """A bar on a terminal."""

    def __init__(self, display: _Display, task: TaskID) -> None:
        self._display, self._task = display, task

    def advance(self, count: int = 1) -> None:
        raise_lost_interrupt()
        self._display.advance(self._task, count)


class _Lines:
    """A bar in a log: a line now and then, none if the work is short."""

    def __init__(self, progress: Progress, description: str, total: int | None, unit: str) -> None:
        self._progress, self._description, self._unit = progress, description, unit
        self._total = "" if total is None else f"/{total}"
        self._done = 0
        self._started = self._told = time.monotonic()

    def advance(self, count: int = 1) -> None:
        raise_lost_interrupt()
        self._done += count
        now = time.monotonic()
        if now - self._told >= LOG_SECONDS:
            self._told = now
            seconds = now - self._started
            rate = f", {self._done / seconds:,.0f} {self._unit}/s" if self._unit else ""
            done = f"{self._done}{self._total}"
            self._progress.say(f"{self._description}: {done}, {seconds:.0f} s{rate}")
