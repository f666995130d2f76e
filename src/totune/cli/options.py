"""Options that several commands share, and the examples in their help."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from totune.outputs import output_path

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object as the last line of standard output."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing on the way; only results and errors.")
]


def output(option: str = "--out") -> Callable[[str], Path]:
    """Reads the value of an option that names an output; an empty one is refused."""

    def path(text: str) -> Path:
        return output_path(text, option)

    return path


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a command's help: what one may want, and the command line that does it."""
    lines = [f"{escape(want)}\n    [bold]{escape(command)}[/bold]" for want, command in pairs]
    return "\n".join(lines)
