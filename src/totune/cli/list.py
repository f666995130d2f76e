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
            help="strategies, heads, baselines, tasks, analyses, encoders or recipes; all if left "
            "out."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what there is: strategies, heads, baselines, tasks, analyses, encoders, recipes."""
    from totune.cli.catalogue import KINDS, entries, outlines

    if kind is not None and kind not in KINDS:
        raise ConfigError(f"There is nothing to list called {kind!r}. {did_you_mean(kind, KINDS)}")
    chosen = [one for one in KINDS if kind in (None, one)]
    if json:
        return emit({one: entries(one) for one in chosen})
    for one in chosen:
        rows: list[tuple[str, ...]] = [
            (name, summary, ", ".join(suits), ", ".join(options))
            for name, summary, suits, options in outlines(one)
        ]
        header: tuple[str, ...] = (one, "", "for", "options")
        if not any(row[2] for row in rows):  # what data they are for, where some say it
            header, rows = (one, "", "options"), [(row[0], row[1], row[3]) for row in rows]
        show_table(header, rows)
        typer.echo()
