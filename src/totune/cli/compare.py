"""`totune compare`: the main job."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, Quiet, examples, output
from totune.cli.output import emit, model_lines, show_report_table
from totune.cli.settings import STUDY_OPTIONS, read_settings, takes

if TYPE_CHECKING:
    from totune.study.study import Study

EXAMPLES = examples(
    (
        "Try it on film reviews, with nothing but what is installed:",
        "totune compare example:rotten-tomatoes --out studies/films",
    ),
    (
        "Your own data, five seeds, at most half an hour:",
        "totune compare reviews.csv --seeds 5 --budget 30m --out studies/reviews",
    ),
    (
        "Name the columns, and what to compare:",
        "totune compare pairs.tsv --text question --pair answer --label relevant "
        "--strategies feature-extraction,last-2,last-4",
    ),
    (
        "Another encoder, other rates:",
        "totune compare hub:glue/mrpc --model roberta-base --set fine-tuning.learning_rate=2e-5 "
        "--set feature-extraction.pooling=cls",
    ),
    (
        "Tagged words, in a folder of CoNLL files:",
        "totune compare data/conll2003 --head crf --tag-scheme iobes",
    ),
    (
        "Search each strategy's options first, on dev, with 20 trials:",
        "totune compare reviews.csv --search 20 --out studies/reviews",
    ),
    (
        "Four runs at once on this machine; or on a Ray cluster, each with four processors:",
        "totune compare reviews.csv --jobs 4\n    "
        "totune compare reviews.csv --executor ray --address auto --cpus-per-run 4",
    ),
    (
        "The verdict of five seeds at a part of their cost: who cannot win is dropped on the way.",
        "totune compare reviews.csv --seeds 5 --race --out studies/reviews",
    ),
    (
        "More seeds later: the same command runs only what is missing.",
        "totune compare reviews.csv --seeds 10 --out studies/reviews",
    ),
)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A csv, tsv, jsonl or parquet file, a CoNLL file, sentiment trees, a folder with "
        "train/dev/test files, hub:NAME, hub:NAME/CONFIG or example:rotten-tomatoes.",
    ),
]


@takes(STUDY_OPTIONS)
def run(
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            parser=output(),
            metavar="DIR",
            help="The study's folder; what is finished there is not run again.",
        ),
    ] = Path("study"),
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train every strategy over several seeds and say which is worth it."""
    chosen = read_settings(settings)
    from totune.api import compare
    from totune.cli.progress import RichProgress
    from totune.search.records import hide_passwords

    command = hide_passwords(shlex.join(["totune", *sys.argv[1:]]))
    with RichProgress(quiet) as progress:
        study = compare(data, out=out, progress=progress, command=command, **chosen)
    if json:
        return emit(study.to_json())
    show_report_table(study.table())
    typer.echo("\n" + "\n".join(told(study)))


def told(study: "Study") -> Iterator[str]:
    """The answer and where everything lies, line by line."""
    from totune.export import is_model

    advice = study.advice
    yield advice.headline
    yield from (f"- {reason}" for reason in (*advice.reasons, *advice.costs, *advice.effort))
    yield from (f"- But: {caveat}" for caveat in advice.caveats)
    yield ""
    yield f"Report: {study.folder / 'report.html'}"
    if is_model(study.best):
        yield from model_lines(study.best)
