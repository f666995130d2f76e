"""Each way of ending has its exit code and its words; tracebacks only on demand."""

import inspect
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import totune
from totune.cli.app import app, main
from totune.cli.interrupts import interruptible
from totune.cli.options import Command
from totune.cli.progress import RichProgress
from totune.errors import ConfigError, DataError, RunError

SRC = str(Path(totune.__file__).parents[1])
Ended = subprocess.CompletedProcess[str]
Here = Callable[..., Ended]


def fail(how: str) -> None:
    """A command of these tests' own, which ends as it is told."""
    if how == "data":
        raise DataError("reviews.csv row 3: no text.")
    if how == "config":
        raise ConfigError(["First fault.", "Second fault."])
    if how == "run":
        raise RunError("fine-tuning, seed 1: the loss is not a number.")
    if how == "bug":
        raise KeyError("lost")
    if how == "end of file":
        raise EOFError("No data left in file")
    if how == "full":
        raise OSError(28, "No space left on device", "study/study.json")
    if how == "full in Rust":
        raise RuntimeError("I/O error: No space left on device (os error 28)")
    if how == "memory":
        raise MemoryError("Unable to allocate 3.00 TiB")
    if how == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    typer.echo("x" * 1_000_000 if how == "long" else "done \u2013")


PROGRAM = f"""
import os, signal, typer
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs have it ignored
from totune.cli.app import app, main
from totune.errors import ConfigError, DataError, RunError

{inspect.getsource(fail)}

app.command()(fail)
main()
"""


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Runs the program in this process, where nothing needs to be imported anew."""
    added = typer.models.CommandInfo(name="fail", callback=fail, cls=Command)
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands, added])

    def call(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert isinstance(ended.value.code, int)
        out, err = capfd.readouterr()
        return Ended(arguments, ended.value.code, out, err)

    return call


def run(*arguments: str, **options: Any) -> Ended:
    """Runs the program in a process of its own."""
    settings = {"capture_output": True, "text": True, **options}
    environment = {**os.environ, "PYTHONPATH": SRC, **settings.pop("env", {})}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environment, timeout=60, check=False, **settings)


def test_in_a_process_of_its_own_it_ends_as_here(in_process: Here):
    apart, ended = run("fail", "data"), in_process("fail", "data")
    assert (apart.returncode, apart.stderr, apart.stdout) == (2, ended.stderr, ended.stdout)


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("data", 2, "error: reviews.csv row 3: no text.\n"),
        ("config", 2, "error: First fault.\nSecond fault.\n"),
        ("run", 1, "error: fine-tuning, seed 1: the loss is not a number.\n"),
        ("bug", 1, "error: KeyError: 'lost' (a fault of totune; --debug shows where)\n"),
        (
            "end of file",
            1,
            "error: RuntimeError: EOFError: No data left in file (a fault of totune; --debug shows "
            "where)\n",
        ),
        (
            "full",
            2,
            "error: study/study.json cannot be read or written: no space left on device. "
            "Make room on that disk. What had finished is kept; the same command then does only "
            "the rest.\n",
        ),
        (
            "full in Rust",
            2,
            "error: A file cannot be read or written: no space left on device. "
            "Make room on that disk. What had finished is kept; the same command then does only "
            "the rest.\n",
        ),
        (
            "memory",
            2,
            "error: Memory ran out (Unable to allocate 3.00 TiB). Close other programs, "
            "or ask for less: fewer rows (--fraction), shorter texts (--max-length), fewer --jobs. "
            "What had finished is kept.\n",
        ),
    ],
)
def test_a_fault_is_one_message_and_a_code(in_process: Here, how: str, code: int, message: str):
    ended = in_process("fail", how)
    assert (ended.returncode, ended.stderr, ended.stdout) == (code, message, "")


def test_success_is_0():
    ended = run("fail", "not")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done –\n", "")


def test_an_interrupt_is_130_and_says_what_is_kept():
    ended = run("fail", "interrupt")
    assert ended.returncode == 130
    assert "What had finished is kept" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [["fail"], ["fail", "not", "--colour"], ["nonsense"], ["--nonsense"], []],
    ids=["missing argument", "unknown option", "unknown command", "unknown global option", "none"],
)
def test_wrong_usage_is_2(in_process: Here, arguments: list[str]):
    ended = in_process(*arguments)
    assert ended.returncode == 2
    assert "Usage: totune" in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--debug", "fail", "bug"], {}),
        (["fail", "bug", "--debug"], {}),
        (["fail", "bug"], {"TOTUNE_DEBUG": "1"}),
    ],
)
def test_debug_shows_the_traceback(
    in_process: Here,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environment: dict[str, str],
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ended = in_process(*arguments)
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert ended.stderr.endswith("error: KeyError: 'lost'\n")


@pytest.mark.parametrize("how", ["long", "short"])
def test_a_reader_that_leaves_causes_no_noise(how: str):
    reader, writer = os.pipe()
    os.close(reader)
    ended = run("fail", how, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_terminal_without_unicode_gets_a_substitute():
    ended = run("fail", "not", env={"PYTHONIOENCODING": "latin-1"})
    assert (ended.returncode, ended.stdout) == (0, "done ?\n")


def test_the_version_is_the_packages(in_process: Here):
    assert in_process("--version").stdout == f"totune {totune.__version__}\n"


def test_python_m_totune_is_the_command_line():
    ended = subprocess.run(
        [sys.executable, "-m", "totune", "--version"],
        env={**os.environ, "PYTHONPATH": SRC},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == f"totune {totune.__version__}\n"


def test_help_waits_for_nothing_heavy():
    heavy = {"torch", "transformers", "sklearn", "scipy", "matplotlib", "datasets"}
    code = f"import sys, totune.cli; print(sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SRC},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "[]\n"


class Swallows:
    """Loses the interrupt that it sends, as Python does in a destructor."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("shown", ["a bar", "a note"])
def test_an_interrupt_that_python_loses_is_raised_again(quiet: bool, shown: str) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    progress = RichProgress(quiet, Console(file=io.StringIO()))
    try:
        with interruptible():
            Swallows()
            with pytest.raises(KeyboardInterrupt), progress.bar("epoch 1", 4) as bar:
                bar.advance() if shown == "a bar" else progress.say("note")
            progress.say("what is said while it ends")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_interrupt_ends_at_once() -> None:
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from totune.cli.interrupts import interruptible
with interruptible():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
"""
    environment = {**os.environ, "PYTHONPATH": SRC}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (130, b"")
    assert ended.stderr == b"\nEnded at once. What had finished is kept.\n"


def test_completion_can_be_installed() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output
