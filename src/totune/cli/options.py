"""Options that several commands share, and the examples in their help."""

from typing import Annotated

import typer
from rich.markup import escape

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object as the last line of standard output."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing on the way; only results and errors.")
]


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a command's help: what one may want, and the command line that does it."""
    lines = [f"{escape(want)}\n    [bold]{escape(command)}[/bold]" for want, command in pairs]
    return "\n".join(lines)
