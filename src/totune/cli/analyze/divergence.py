"""`totune analyze divergence`: how far texts lie from what an encoder was pretrained on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.analyze.common import Json, Quiet, Set, examples, output, output_folder, show
from totune.cli.options import parse_assignments
from totune.errors import ConfigError

if TYPE_CHECKING:
    from totune.analyses.inputs.corpora import CorpusColumns, CorpusScores

EXAMPLES = examples(
    (
        "How far film and product reviews lie from a sample of Wikipedia:",
        "totune analyze divergence films.csv products.csv --reference wikipedia.txt.xz",
    ),
    (
        "The genres of one table, both texts of a pair, with the scores of two strategies:",
        "totune analyze divergence mnli.tsv --by genre --reference wikipedia.txt.xz "
        "--reference books.txt.xz --scores scores.csv",
    ),
    (
        "Scores from a study of each corpus:",
        "totune analyze divergence films.csv products.csv --reference wikipedia.txt.xz "
        "--study films=studies/films --study products=studies/products",
    ),
    (
        "In bits, which are logarithms to base 2:",
        "totune analyze divergence films.csv --reference wikipedia.txt.xz --set base=2",
    ),
)


Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="The corpora: .txt files with a text per line (packed or not), tables, folders "
        "with train/dev/test files, hub:NAME or example:rotten-tomatoes.",
    ),
]
Reference = Annotated[
    list[str],
    typer.Option(
        metavar="CORPUS",
        help="What they are compared with, such as a sample of what the encoder was "
        "pretrained on; given several times, all of it together.",
    ),
]
ScoreFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A csv or json file with what strategies score: corpus, frozen, tuned.",
    ),
]
Studies = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=DIR",
        help="The study of a corpus, whose mean test scores are read; repeatable.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        parser=output(),
        help="Where the result is written; in a study's folder its report shows it too.",
    ),
]


def run(
    data: Data,
    reference: Reference,
    text: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the text in tables. Detected if not named."),
    ] = None,
    pair: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the second text, for pairs.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that splits a table into corpora.")
    ] = None,
    scores: ScoreFile = None,
    study: Studies = None,
    frozen: Annotated[
        str, typer.Option(help="The strategy whose scores are called frozen.")
    ] = "feature-extraction",
    tuned: Annotated[
        str, typer.Option(help="The strategy whose scores are called tuned.")
    ] = "fine-tuning",
    encoding: Annotated[str | None, typer.Option(help="Of text files; UTF-8 if not named.")] = None,
    set: Set = None,
    out: Out = Path("analysis"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show how far corpora lie from another, in nats, and whether that decides if tuning pays."""
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.analyses.inputs.corpora import (
        CorpusColumns,
        DivergenceInputs,
        read_corpora,
        read_reference,
    )
    from totune.cli.progress import RichProgress

    analysis = ANALYSES.create("divergence", parse_assignments(set or []))
    folder = output_folder(analysis.name, out)
    metric, known = _scores(scores, study or [], frozen, tuned)
    columns = CorpusColumns(text, pair, by, encoding)
    with RichProgress(quiet) as progress:
        others = read_corpora(data, columns, progress)
        apart = read_reference(reference, columns, progress)
        inputs = DivergenceInputs(apart, others, known, metric, (frozen, tuned))
        about = _about([corpus.name for corpus in others], data, reference, columns)
        findings = analyse(analysis, inputs, about, progress)
    show(findings, folder, (), json)


def _about(
    names: Sequence[str], data: Sequence[str], reference: Sequence[str], columns: "CorpusColumns"
) -> Mapping[str, Any]:
    """What was read, as findings record it."""
    read = {"text": columns.text, "pair": columns.pair, "by": columns.by}
    named = {column: name for column, name in read.items() if name is not None}
    return {
        "data": ", ".join(names),
        "sources": list(data),
        "reference": list(reference),
        "columns": named,
    }


def _scores(
    file: Path | None, studies: Sequence[str], frozen: str, tuned: str
) -> "tuple[str, CorpusScores]":
    """The metric and the scores by corpus, from a file or from studies.

    Raises:
        ConfigError: if both are given, or a study has no name.
        DataError: if the file cannot be used.
    """
    from totune.analyses.inputs.corpora import read_scores, scores_of_studies

    if file is not None and studies:
        raise ConfigError("Scores come from --scores or from --study, not from both.")
    if file is not None:
        return "score", read_scores(file)
    if not studies:
        return "score", {}
    from totune.study.study import Study

    faults = [
        f"--study {given!r} is not of the form NAME=DIR, with NAME a corpus."
        for given in studies
        if not all(given.partition("="))
    ]
    if faults:
        raise ConfigError(faults)
    pairs = (given.partition("=") for given in studies)
    read = {name: Study(Path(folder)) for name, _, folder in pairs}
    return scores_of_studies(
        {name: (study.info, study.records) for name, study in read.items()}, frozen, tuned
    )
