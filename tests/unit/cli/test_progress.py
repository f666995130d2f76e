"""Progress: bars on a terminal, lines in a log, silence on request."""

import io

import pytest
from rich.console import Console

from totune.cli import progress as module
from totune.cli.progress import RichProgress


def make(terminal: bool, quiet: bool = False) -> tuple[RichProgress, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=80, color_system=None)
    return RichProgress(quiet, console), stream


def test_by_default_it_speaks_on_standard_error(capsys: pytest.CaptureFixture[str]):
    RichProgress().say("3 rows dropped.")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "3 rows dropped.\n")


def test_notes_and_warnings_are_lines_of_text_not_markup():
    progress, stream = make(terminal=False)
    progress.say("column [bold] has " + "x" * 100)
    progress.warn("2 duplicates [1].")
    assert stream.getvalue() == (
        "column [bold] has " + "x" * 100 + "\nwarning: 2 duplicates [1].\n"
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_says_nothing(terminal: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOG_SECONDS", 0.0)
    progress, stream = make(terminal, quiet=True)
    progress.say("a")
    progress.warn("b")
    with progress.bar("c", 2) as bar:
        bar.advance()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_counts():
    progress, stream = make(terminal=True)
    with progress.bar("encoding [x]", 4) as bar:
        bar.advance(3)
        progress.say("in between")
    assert "encoding [x]" in stream.getvalue()
    assert "3/4" in stream.getvalue()
    assert "in between" in stream.getvalue()


def test_bars_nest_and_can_follow_each_other():
    progress, stream = make(terminal=True)
    for _ in range(2):
        with progress.bar("runs", 2), progress.bar("epochs", 3) as inner:
            inner.advance(3)
    assert "runs" in stream.getvalue()
    assert "3/3" in stream.getvalue()


def test_a_bar_ends_with_its_work_even_when_that_fails():
    progress, _ = make(terminal=True)
    with pytest.raises(ValueError, match="no"), progress.bar("runs", 2):
        raise ValueError("no")
    with progress.bar("again", 1) as bar:
        bar.advance()


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 4.0, 11.0, 12.0, 25.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    progress, stream = make(terminal=False)
    with progress.bar("encoding", 400) as bar:
        for _ in range(4):
            bar.advance(100)
    assert stream.getvalue() == "encoding: 200/400, 11 s\nencoding: 400/400, 25 s\n"


def test_a_bar_with_a_unit_tells_the_rate_and_may_have_no_end(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 20.0])
    progress, stream = make(terminal=False)
    with monkeypatch.context() as patch:
        patch.setattr(module.time, "monotonic", lambda: next(clock))
        with progress.bar("encoding", None, "rows") as bar:
            bar.advance(30_000)
    assert stream.getvalue() == "encoding: 30000, 20 s, 1,500 rows/s\n"
    progress, stream = make(terminal=True)
    with progress.bar("encoding", None, "rows") as bar:
        bar.advance(100)
        bar.advance(100)
    assert "200/?" in stream.getvalue()
    assert "rows/s" in stream.getvalue()


ROWS = [
    {"strategy": "tf-idf", "runs": "1/3", "test accuracy": "76.1"},
    {"strategy": "last-2", "runs": "0/3", "test accuracy": "–"},
]


def test_a_log_gets_a_line_for_each_row_that_changed():
    progress, stream = make(terminal=False)
    progress.table(ROWS)
    progress.table([ROWS[0], {**ROWS[1], "runs": "1/3", "test accuracy": "[80]"}])
    assert stream.getvalue() == (
        "tf-idf: runs 1/3, test accuracy 76.1\nlast-2: runs 1/3, test accuracy [80]\n"
    )


def test_a_terminal_keeps_the_table_until_the_end():
    progress, stream = make(terminal=True)
    with progress:
        progress.table(ROWS)
        with progress.bar("epochs", 3) as bar:
            bar.advance(2)
        after_bar = len(stream.getvalue())
        progress.say("next run")
        assert "last-2" in stream.getvalue()[after_bar:]
    after_end = len(stream.getvalue())
    progress.say("done")
    assert "last-2" not in stream.getvalue()[after_end:]
