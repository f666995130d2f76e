"""`totune evaluate`: how good a trained model is on labelled data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from totune.cli.options import Json, examples, in_flags
from totune.cli.output import emit, show_metrics
from totune.cli.predict import (
    EncoderPlace,
    Encoding,
    ModelFolder,
    Pair,
    Text,
    columns_of,
    tag_scheme_of,
    tell_missing_documents,
)
from totune.errors import ConfigError, DataError
from totune.registry import did_you_mean

if TYPE_CHECKING:
    from totune.data.examples import Columns, Examples
    from totune.data.tagging.columns import NamedColumns
    from totune.export import Predictor

EXAMPLES = examples(
    ("On a file of labelled rows:", "totune evaluate studies/reviews/best labelled.csv"),
    ("On the dev split of a folder:", "totune evaluate model data/mrpc --split dev"),
    (
        "On a file whose columns are not those of training:",
        "totune evaluate model labelled.tsv --text 2 --pair 3 --label 1",
    ),
)
SPLITS = ("train", "dev", "test")


def run(
    model_dir: ModelFolder,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A labelled file; or a folder, hub: or example:.")
    ],
    split: Annotated[
        str, typer.Option(help="Which split, where DATA is not a single file.")
    ] = "test",
    text: Text = None,
    pair: Pair = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the label: its name or its number; that of training if not named.",
            show_default=False,
        ),
    ] = None,
    positive_label: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Of two classes the one that F1 is of; that of training if not named.",
            show_default=False,
        ),
    ] = None,
    model: EncoderPlace = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Measure a trained model on labelled rows."""
    if split not in SPLITS:
        raise ConfigError(f"There is no split {split!r}. {did_you_mean(split, SPLITS)}")
    from totune.export import load_model
    from totune.text import counted

    trained = load_model(model_dir, model)
    named = {"text": text, "pair": pair, "label": label}
    rows = read_rows(trained, data, named, split, encoding)
    tell_missing_documents(trained, rows)
    warnings = trained.cautions(rows)
    for warning in warnings:
        typer.echo(f"warning: {in_flags(warning)}", err=True)
    metrics = trained.evaluate(rows, positive_label)
    positive = positive_label or trained.task.positive
    if json:
        facts = {"rows": len(rows), "metrics": metrics, "positive_label": positive}
        facts["warnings"] = warnings
        return emit({"model": model_dir, "data": data, **facts})
    show_metrics({counted(len(rows), "row" if rows.words is None else "sentence"): metrics})
    if positive is not None:
        typer.echo(f"F1 is that of the class {positive!r}.")


def read_rows(
    model: "Predictor", data: str, named: "NamedColumns", split: str, encoding: str | None
) -> "Examples":
    """All rows of a file, or one split of anything else, drawn as for training if it must be.

    Args:
        model: of whose columns the rows are read.
        data: as on the command line.
        named: columns that are others here, by "text", "pair" and "label".
        split: of what is not a single file.
        encoding: of text files.
    """
    from totune.data.sources import load_dataset, read_inputs

    columns, tag_scheme = columns_of(model), tag_scheme_of(model)
    if Path(data).expanduser().is_file():
        rows = read_inputs(data, columns, named=named, encoding=encoding, tag_scheme=tag_scheme)
        if rows.labels is not None:
            return rows
        return _labelled(data, columns, named, encoding, len(rows))
    dataset = load_dataset(
        data,
        text=named["text"] or columns.text,
        pair=named["pair"] or columns.pair,
        label=named["label"] or columns.label,
        task=columns.task,
        label_separator=columns.label_separator,
        encoding=encoding,
        tag_scheme=tag_scheme,
        split_seed=int(model.about.get("split_seed", 0)),
    )
    for note in (*dataset.notes, *dataset.warnings):  # the split may be drawn from train
        typer.echo(in_flags(note), err=True)
    return dict(dataset.splits())[split]  # type: ignore[index]


def _labelled(
    data: str, columns: "Columns", named: "NamedColumns", encoding: str | None, count: int
) -> "Examples":
    """The rows of a file that have a label, where not all of `count` do; tells how many do not.

    Raises:
        DataError: no row has one, or words lack tags.
    """
    from totune.data.sources import read_inputs

    what = f"the column {columns.label!r} that the model was trained on (--label names another)"
    if named["label"] is not None:
        what = f"the column {named['label']!r}"
    if columns.task == "tagging":
        raise DataError(f"{data} has no labels to compare with: not every row has tags in {what}.")
    rows = read_inputs(data, columns, named=named, encoding=encoding, labelled=True)
    if not len(rows):
        raise DataError(f"{data} has no labels to compare with: none is in {what}.")
    lacking = named["label"] or columns.label
    typer.echo(f"{count - len(rows):,} of {count:,} rows left out: no {lacking!r}.", err=True)
    return rows
