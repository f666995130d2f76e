"""`totune report`: the report of a study, drawn anew from its records."""

from pathlib import Path
from typing import Annotated

import typer

from totune.cli.compare import told
from totune.cli.options import Json, examples
from totune.cli.output import emit, show_report_table

EXAMPLES = examples(("After copying or updating a study:", "totune report studies/reviews"))


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")],
    json: Json = False,
) -> None:
    """Rebuild report.html and report.md from a study's records; nothing is trained."""
    from totune.study.study import Study

    study = Study(folder)
    study.report()
    if json:
        return emit(study.to_json())
    show_report_table(study.table())
    typer.echo("\n" + "\n".join(told(study)))
