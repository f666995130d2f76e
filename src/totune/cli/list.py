"""`totune list`: what there is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from totune.cli.options import Json, examples
from totune.cli.output import emit, show_table
from totune.errors import ConfigError
from totune.registry import did_you_mean

if TYPE_CHECKING:
    from totune.cli.catalogue import Entry

EXAMPLES = examples(
    ("Everything:", "totune list"),
    ("The strategies and their options:", "totune list strategies"),
    ("For a program:", "totune list heads --json"),
)


def run(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="strategies, heads, baselines, tasks, analyses, encoders or recipes; all if left "
            "out."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what there is: strategies, heads, baselines, tasks, analyses, encoders, recipes."""
    from totune.cli.catalogue import KINDS, entries

    if kind is not None and kind not in KINDS:
        raise ConfigError(f"There is nothing to list called {kind!r}. {did_you_mean(kind, KINDS)}")
    found = {one: entries(one) for one in KINDS if kind in (None, one)}
    if json:
        return emit(found)
    for one, members in found.items():
        _show(one, members)
        typer.echo()


def _show(kind: str, members: "Sequence[Entry]") -> None:
    """A row per member; what data they are for only where some say it."""
    columns = {
        kind: [member.name for member in members],
        "": [member.summary for member in members],
        "for": [", ".join(member.suits) for member in members],
        "options": [", ".join(option.name for option in member.options) for member in members],
    }
    told = {name: cells for name, cells in columns.items() if name != "for" or any(cells)}
    show_table(tuple(told), list(zip(*told.values(), strict=True)))
