"""`totune reproduce`: a table or figure of a paper, its numbers beside ours."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from totune.cli.options import Json, Quiet, examples, output
from totune.cli.output import emit
from totune.text import hide_secrets

EXAMPLES = examples(
    ("The sparse baselines of Hart's paper, in seconds:", "totune reproduce hart-sparse"),
    (
        "Its comparison of frozen, unfrozen and last two layers, on a tenth of the data:",
        "totune reproduce hart-bert --data-dir data --fraction 0.1 --seeds 3",
    ),
    ("What there is to reproduce:", "totune list recipes"),
)


def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name of totune list recipes.")],
    data_dir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the recipe's data lies.")
    ] = Path("data"),
    model: Annotated[str | None, typer.Option(help="Another encoder than the recipe's.")] = None,
    fraction: Annotated[
        float, typer.Option(help="Share of the rows (a study: train rows) used.")
    ] = 1.0,
    seeds: Annotated[
        int | None, typer.Option(help="How many; the recipe's own number if not named.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=output(),
            metavar="DIR",
            help="The report's folder; the recipe's name if not named.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a recipe of a paper's table or figure; the paper's numbers stand beside ours."""
    from totune.cli.progress import RichProgress
    from totune.recipes.reproduce import reproduce

    command = hide_secrets(shlex.join(["totune", *sys.argv[1:]]))
    with RichProgress(quiet) as progress:
        folder = reproduce(
            recipe,
            data_dir=data_dir,
            model=model,
            fraction=fraction,
            seeds=seeds,
            out=out,
            progress=progress,
            command=command,
        )
    if json:
        return emit({"recipe": recipe, "folder": folder, "report": folder / "report.html"})
    typer.echo((folder / "report.md").read_text(encoding="utf-8"))
    typer.echo(f"Report: {folder / 'report.html'}")
