"""`totune analyze layer-probe`: what each block of an encoder knows of the labels."""

from pathlib import Path
from typing import Any

from totune.cli.analyze.common import (
    READING_OPTIONS,
    Data,
    Json,
    Out,
    Quiet,
    Set,
    Strategies,
    Study,
    examples,
    open_data,
    show,
)
from totune.cli.parsing import parse_assignments
from totune.cli.settings import takes

EXAMPLES = examples(
    (
        "Each block of the default encoder:",
        "totune analyze layer-probe example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze layer-probe reviews.csv --study studies/reviews --strategies fine-tuning",
    ),
)


@takes(READING_OPTIONS)
def run(
    data: Data,
    study: Study = None,
    strategies: Strategies = None,
    set: Set = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train a linear probe on every block and show what it scores on dev."""
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.cli.progress import RichProgress

    analysis = ANALYSES.create("layer-probe", parse_assignments(set or []))
    with RichProgress(quiet) as progress:
        opened = open_data(data, study, strategies, settings, progress)
        found = analyse(analysis, opened.states, opened.about, progress)
    show(found, out or study or Path("analysis"), opened.records, json)
