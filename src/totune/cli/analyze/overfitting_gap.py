"""`totune analyze overfitting-gap`: how far train runs ahead of dev, epoch by epoch."""

from pathlib import Path
from typing import Annotated

import typer

from totune.cli.analyze.common import Json, Set, examples, output_folder, show
from totune.cli.options import parse_assignments

EXAMPLES = examples(
    (
        "The gap of every strategy of a study, in the study's report:",
        "totune analyze overfitting-gap studies/reviews",
    ),
    (
        "Where a rule of two points, seen twice in a row, would stop:",
        "totune analyze overfitting-gap studies/reviews --set tolerance=0.02 --set gap_patience=2",
    ),
)


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study's folder.")],
    set: Set = None,
    json: Json = False,
) -> None:
    """Show how far train leads dev, and where the gap rule would stop; nothing is trained."""
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.progress import Progress
    from totune.study.study import Study

    analysis = ANALYSES.create("overfitting-gap", parse_assignments(set or []))
    opened = Study(study)
    output_folder(analysis.name, study)
    info = opened.info
    about = {
        "data": info.name,
        "digest": info.data.get("digest"),
        "metric": info.metric,
        "model": info.model.get("name"),
        "fingerprint": info.model.get("fingerprint"),
    }
    found = analyse(analysis, (info, opened.records), about, Progress())
    show(found, study, opened.records, json)
