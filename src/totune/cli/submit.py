"""`totune submit`: predictions in the form that a benchmark's server scores."""

from pathlib import Path
from typing import Annotated

import typer

from totune.cli.options import Json, Quiet, examples, output
from totune.cli.output import emit, show_table

app = typer.Typer(no_args_is_help=True, help="Write predictions for a benchmark's server.")
GLUE_EXAMPLES = examples(
    (
        "All that a reproduced table has trained:",
        "totune reproduce adapters-glue --data-dir glue_data\n    "
        "totune submit glue adapters-glue --data-dir glue_data --out submission",
    ),
    (
        "Studies of one's own:",
        "totune submit glue studies/cola mnli=studies/nli --data-dir glue_data --out submission",
    ),
)


@app.callback()
def benchmarks() -> None:
    """Write predictions for a benchmark's server."""


@app.command("glue", epilog=GLUE_EXAMPLES)
def glue(
    studies: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY...",
            help="Folders of studies, whose best models predict, or of models, or of the report of "
            "adapters-glue; TASK=FOLDER where the folder's name is not the task's.",
        ),
    ],
    data_dir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where GLUE's folders with the test files lie.")
    ] = Path("data"),
    out: Annotated[
        Path, typer.Option(parser=output(), metavar="DIR", help="A new or empty folder.")
    ] = Path("submission"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict GLUE's test sets and write submission.zip for its server, AX included."""
    from totune.cli.progress import RichProgress
    from totune.recipes.glue import submit_glue

    with RichProgress(quiet) as progress:
        made = submit_glue(studies, data_dir=data_dir, out=out, progress=progress)
    if json:
        return emit({"archive": made.archive, "written": made.written, "missing": made.missing})
    rows = [(f"{name}.tsv", f"{count:,} rows") for name, count in made.written.items()]
    rows += [(f"{name}.tsv", f"not written: {reason}") for name, reason in made.missing.items()]
    show_table(("file", "predictions"), rows)
    if made.missing:
        typer.echo("The server wants all eleven files: add the others before you upload.")
    typer.echo(f"For gluebenchmark.com: {made.archive}")
