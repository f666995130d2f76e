"""Ctrl-C ends a command, even where Python loses it.

`KeyboardInterrupt` is raised wherever the program is, and lost where that is inside a destructor, a
callback of a weak reference, or code that catches everything. So a command notes that it came, and
raises it once more when it next shows how far it is.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # the exit code
_came: list[int] = []  # one item from the interrupt on, until it is raised again


@contextmanager
def interruptible() -> Iterator[None]:
    """Has Ctrl-C raise `KeyboardInterrupt` inside the block, and a second one end at once.

    Where interrupts are ignored (in background jobs) or handled otherwise, and outside the main
    thread, it changes nothing.
    """
    _came.clear()
    handled = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if handled or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os.write(2, b"\nEnded at once. What had finished is kept.\n")
            os._exit(INTERRUPTED)
        _came.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def raise_lost_interrupt() -> None:
    """Raises `KeyboardInterrupt` again if one came and the command still goes on."""
    if _came:
        _came.clear()
        raise KeyboardInterrupt
