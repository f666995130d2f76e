"""`totune list`: what there is."""

from typing import Annotated

import typer

from totune.cli.options import Json, examples
from totune.cli.output import emit, show_table
from totune.errors import ConfigError
from totune.registry import did_you_mean

EXAMPLES = examples(
    ("Everything:", "totune list"),
    ("The strategies and their options:", "totune list strategies"),
    ("For a program:", "totune list heads --json"),
)


def run(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="strategies, heads, baselines, tasks, encoders or recipes; all if left out."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what there is: strategies, heads, baselines, tasks, encoders, recipes."""
    from totune.cli.catalogue import KINDS, entries

    if kind is not None and kind not in KINDS:
        raise ConfigError(f"There is nothing to list called {kind!r}. {did_you_mean(kind, KINDS)}")
    found = {one: entries(one) for one in KINDS if kind in (None, one)}
    if json:
        return emit(found)
    for one, members in found.items():
        show_table(
            (one, "", "options"),
            [
                (member.name, member.summary, ", ".join(o.name for o in member.options))
                for member in members
            ],
        )
        typer.echo()
