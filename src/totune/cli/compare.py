"""`totune compare`, `train` and `report`: a study, one model of one strategy, and reports."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import (
    COMMON_OPTIONS,
    STUDY_OPTIONS,
    DataOrTrain,
    Json,
    Quiet,
    examples,
    in_flags,
    output,
    read_settings,
    takes,
)
from totune.cli.output import emit, model_lines, show_metrics, show_report_table

if TYPE_CHECKING:
    from totune.study.study import Study

COMPARE_EXAMPLES = examples(
    (
        "Try it on film reviews, with nothing but what is installed:",
        "totune compare example:rotten-tomatoes --out studies/films",
    ),
    (
        "A first answer in minutes; the same folder then takes the rest, with --preset best:",
        "totune compare reviews.csv --preset quick --out studies/reviews",
    ),
    (
        "Your own data, five seeds, at most half an hour:",
        "totune compare reviews.csv --seeds 5 --budget 30m --out studies/reviews",
    ),
    (
        "Few rows: five folds, so that every row is tested on; texts of an author stay together:",
        "totune compare reviews.csv --folds 5 --group author --out studies/reviews",
    ),
    (
        "Files of your own splits; GLUE's habit of scoring on dev:",
        "totune compare --train train.tsv --dev dev.tsv --evaluate-on dev",
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
        "A heavy head on frozen features against a light head on a tuned encoder:",
        "totune compare pairs.tsv --candidate "
        "esim-frozen=feature-extraction,head=esim,pair_encoding=separate "
        "--candidate tuned=fine-tuning,learning_rate=3e-5",
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
    (
        "Skewed classes: weights in the loss, a threshold tuned on dev, the mean F1 of classes:",
        "totune compare reviews.csv --metric macro-f1 --set task.class_weight=balanced "
        "--tune-threshold",
    ),
)


@takes(STUDY_OPTIONS)
def compare(
    data: DataOrTrain = None,
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
    from totune import api
    from totune.cli.progress import RichProgress

    command = shlex.join(["totune", *sys.argv[1:]])
    with RichProgress(quiet) as progress:
        study = api.compare(data, out=out, progress=progress, command=command, **chosen)
    if json:
        return emit(study.to_json())
    show_report_table(study.table())
    typer.echo(in_flags("\n" + "\n".join(_answer(study))))


def _answer(study: "Study") -> Iterator[str]:
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


TRAIN_EXAMPLES = examples(
    ("Fine-tune the default encoder:", "totune train reviews.csv --out models/reviews"),
    (
        "Another strategy, with its own options:",
        "totune train reviews.csv --strategy last-2 --num-train-epochs 5 --set head.layers=2",
    ),
    ("Then use it:", "totune predict models/reviews new.csv"),
)


@takes(COMMON_OPTIONS)
def train(
    data: DataOrTrain = None,
    strategy: Annotated[
        str, typer.Option(help="A name of totune list strategies or totune list baselines.")
    ] = "fine-tuning",
    out: Annotated[
        Path,
        typer.Option(
            parser=output(),
            metavar="DIR",
            help="The model's folder; an interrupted run there goes on.",
        ),
    ] = Path("model"),
    seed: Annotated[int, typer.Option(min=0, help="For initialisation and data order.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train one model and save it; the last lines say who can load it."""
    chosen = read_settings(settings)
    from totune import api
    from totune.cli.progress import RichProgress

    with RichProgress(quiet) as progress:
        model = api.train(data, strategy, out=out, seed=seed, progress=progress, **chosen)
    metrics = model.about["metrics"]
    if json:
        return emit({"model": out, "strategy": strategy, "seed": seed, "metrics": metrics})
    show_metrics(metrics)
    typer.echo("\n" + "\n".join(model_lines(out)))


REPORT_EXAMPLES = examples(("After copying or updating a study:", "totune report studies/reviews"))


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")],
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Your own function that the study was compared on: named here, its code runs.",
            show_default=False,
        ),
    ] = None,
    texts: Annotated[
        bool, typer.Option(help="Show the texts of mistakes, where the study has kept them.")
    ] = True,
    json: Json = False,
) -> None:
    """Rebuild report.html and report.md from a study's records; nothing is trained."""
    from totune.metrics import load_metric
    from totune.study.study import Study

    if metric is not None:
        load_metric(metric)
    study = Study(folder)
    study.report(texts)
    if json:
        return emit(study.to_json())
    show_report_table(study.table())
    typer.echo(in_flags("\n" + "\n".join(_answer(study))))
