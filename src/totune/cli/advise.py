"""`totune advise`: which family of strategies will win, before anything is trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from totune.cli.analyze.common import READING_OPTIONS, open_data, show
from totune.cli.options import Data, Json, Quiet, examples, parse_assignments, takes

EXAMPLES = examples(
    ("What is worth trying? In a minute or two:", "totune advise reviews.csv"),
    (
        "Another encoder, and a sample of what it was pretrained on:",
        "totune advise reviews.csv --model roberta-base --corpus wikipedia.txt",
    ),
    (
        "In a study's report, beside what came true:",
        "totune advise reviews.csv --study studies/reviews",
    ),
)
_NOT_OF_COMPARE = ("cache_dir", "cache_budget")


@takes(READING_OPTIONS)
def run(
    data: Data,
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A study of DATA: its settings hold, and its report shows forecast and outcome.",
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Texts like those the encoder was pretrained on (a .txt file with a text per "
            "line, or a table): how far the data diverges from them is told.",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the analysis forecast (totune list analyses); repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the forecast is written; the study's folder, or ./analysis without one.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Forecast from cheap signals which way of adapting will win, and say what to compare."""
    from totune.analyses.findings import analyse
    from totune.analyses.forecast import FamilyForecast, ForecastInputs
    from totune.analyses.inputs.corpora import CorpusColumns, read_reference
    from totune.cli.progress import RichProgress
    from totune.registry import build

    analysis = build(FamilyForecast, parse_assignments(set or []), "analysis forecast")
    with RichProgress(quiet) as progress:
        reference = read_reference([corpus], CorpusColumns(), progress) if corpus else None
        opened = open_data(data, study, None, settings, progress)
        texts = None if reference is None else reference.texts
        inputs = ForecastInputs(opened.context, texts, _compare(data, settings, study))
        found = analyse(analysis, inputs, opened.about, progress)
    show(found, out or study or Path("analysis"), opened.records, json)
    if not json:
        typer.echo(f"Next: {found.result.facts['command']}")


def _of(study: Path | None) -> dict[str, Any]:
    """Settings of a study that are not the defaults."""
    if study is None:
        return {}
    from totune.runs.settings import Settings
    from totune.runs.store import Store

    usual, known = Settings(), {option.name for option in READING_OPTIONS}
    settings = Store(study).info().settings
    return {
        name: value
        for name, value in settings.items()
        if name in known and value != getattr(usual, name)
    }


def _compare(data: str, settings: Mapping[str, Any], study: Path | None) -> list[str]:
    """The words of `totune compare` with the same data and settings."""
    words = ["totune", "compare", data]
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in {**_of(study), **given}.items():
        if name not in _NOT_OF_COMPARE:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words
