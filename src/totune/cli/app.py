"""The application: its commands, and how each way of ending becomes an exit code.

0 done; 1 a run failed, or totune did; 2 wrong usage or input; 130 interrupted.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, TextIO

import typer

from totune._version import __version__
from totune.cli import (
    advise,
    cache,
    compare,
    convert,
    doctor,
    evaluate,
    features,
    plan,
    predict,
    pretrain,
    reproduce,
    submit,
)
from totune.cli import list as list_command
from totune.cli.analyze.app import app as analyze
from totune.cli.interrupts import INTERRUPTED, interruptible
from totune.cli.options import Command
from totune.errors import ConfigError, TotuneError
from totune.io import describe_fault, memory_ran_out
from totune.text import hide_secrets

COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "compare": (compare.compare, compare.COMPARE_EXAMPLES),
    "advise": (advise.run, advise.EXAMPLES),
    "train": (compare.train, compare.TRAIN_EXAMPLES),
    "predict": (predict.run, predict.EXAMPLES),
    "evaluate": (evaluate.run, evaluate.EXAMPLES),
    "merge": (convert.merge, convert.MERGE_EXAMPLES),
    "features": (features.run, features.EXAMPLES),
    "convert-elmo": (convert.convert_elmo, convert.ELMO_EXAMPLES),
    "plan": (plan.run, plan.EXAMPLES),
    "report": (compare.report, compare.REPORT_EXAMPLES),
    "reproduce": (reproduce.run, reproduce.EXAMPLES),
    "list": (list_command.run, list_command.EXAMPLES),
    "doctor": (doctor.run, doctor.EXAMPLES),
}

app = typer.Typer(
    name="totune",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        # --learning_rate, as transformers' scripts spell it, is --learning-rate.
        "token_normalize_func": lambda token: token.replace("_", "-"),
    },
    epilog="Start with [bold]totune compare example:rotten-tomatoes[/bold]; every command's --help "
    "has examples.",
)
for name, (command, epilog) in COMMANDS.items():
    app.command(name, epilog=epilog)(command)
app.add_typer(analyze, name="analyze")
app.add_typer(cache.app, name="cache")
app.add_typer(pretrain.app, name="pretrain")
app.add_typer(submit.app, name="submit")


def _speak_of_flags(group: typer.Typer) -> None:
    """Makes every command of a group one whose errors name its options."""
    for command in group.registered_commands:
        command.cls = Command
    for nested in group.registered_groups:
        if nested.typer_instance is not None:
            _speak_of_flags(nested.typer_instance)


_speak_of_flags(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"totune {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show tracebacks (as TOTUNE_DEBUG=1 does)."),
    ] = False,
    import_module: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module of yours first, whose heads, strategies and the like are then "
            "there by name; repeatable, anywhere in the line.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """To tune or not to tune? Finds the best way to adapt a text encoder to your data."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with the exit code of how it went.

    Args:
        arguments: what follows the program's name; those of this process if None.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments or os.environ.get("TOTUNE_DEBUG", "") not in ("", "0")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if os.environ.get("RANK", "0") != "0":  # of several processes of a launcher, the first answers
        _mute(sys.stdout)
    sys.exit(_run([one for one in arguments if one != "--debug"], debug))


def _import_modules(arguments: list[str]) -> list[str]:
    """Imports what `--import MODULE` names, wherever it stands; returns the other arguments.

    Raises:
        ConfigError: if a module cannot be imported.
    """
    left, given = [], iter(arguments)
    for one in given:
        option, _, module = one.partition("=")
        if option != "--import":
            left.append(one)
            continue
        module = module or next(given, "")
        if os.getcwd() not in sys.path:  # which a console script does not look in
            sys.path.append(os.getcwd())
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a module of others raises
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                f"--import {module or 'MODULE'} cannot be imported: {reason}. Name a module that "
                "is installed or lies in this folder, without .py."
            ) from None
    return left


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _mute(sys.stdout)
        return 1
    except TotuneError as error:
        _tell(f"error: {error}", debug)
        return error.exit_code
    except Exception as error:
        fault = _memory(error) if memory_ran_out(error) else describe_fault(error)
        if fault is not None:
            _tell(f"error: {fault}", debug)
            return 2
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        hint = "" if debug else " (a fault of totune; --debug shows where)"
        _tell(f"error: {reason}{hint}", debug)
        return 1
    if code == INTERRUPTED:
        _tell(
            "Interrupted. What had finished is kept; the same command again does only the rest.",
            debug=False,
        )
    return code


def _memory(error: Exception) -> str:
    """What to do where memory runs out; NumPy's message tells for what."""
    for_what = f" ({error})" if str(error) else ""
    return (
        f"Memory ran out{for_what}. Close other programs, or ask for less: fewer rows "
        "(--fraction), shorter texts (--max-length), fewer --jobs. What had finished is kept."
    )


def _invoke(arguments: list[str]) -> int:
    try:
        with interruptible():
            app(_import_modules(arguments), prog_name="totune")
    except SystemExit as end:  # how the application always ends
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _tell(message: str, debug: bool) -> None:
    if debug:
        print(hide_secrets(traceback.format_exc()), end="", file=sys.stderr)
    print(hide_secrets(message), file=sys.stderr)


def _mute(stream: TextIO) -> None:
    """Sends what is written, and what is still buffered, nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
