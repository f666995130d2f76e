"""`totune analyze mutual-information`: how many bits each block holds about the labels."""

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
        "Each block of the default encoder, on dev:",
        "totune analyze mutual-information example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze mutual-information reviews.csv --study studies/reviews",
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
    """Estimate how many bits the hidden states of every block hold about the labels."""
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.cli.progress import RichProgress

    analysis = ANALYSES.create("mutual-information", parse_assignments(set or []))
    with RichProgress(quiet) as progress:
        opened = open_data(data, study, strategies, settings, progress)
        found = analyse(analysis, opened.states, opened.about, progress)
    show(found, out or study or Path("analysis"), opened.records, json)
