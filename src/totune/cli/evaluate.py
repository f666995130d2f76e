"""`totune evaluate`: how good a trained model is on labelled data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from totune.cli.options import Json, examples
from totune.cli.output import emit, show_metrics
from totune.cli.predict import Encoding, ModelFolder, columns_of, tag_scheme_of
from totune.errors import ConfigError
from totune.registry import did_you_mean

if TYPE_CHECKING:
    from totune.data.examples import Columns, Examples
    from totune.data.tag_schemes import Scheme

EXAMPLES = examples(
    ("On a file of labelled rows:", "totune evaluate studies/reviews/best labelled.csv"),
    ("On the dev split of a folder:", "totune evaluate model data/mrpc --split dev"),
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
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Measure a trained model on labelled rows."""
    if split not in SPLITS:
        raise ConfigError(f"There is no split {split!r}. {did_you_mean(split, SPLITS)}")
    from totune.export import load_model

    model = load_model(model_dir)
    rows = read_rows(data, columns_of(model), split, encoding, tag_scheme_of(model))
    metrics = model.evaluate(rows)
    if json:
        return emit({"model": model_dir, "data": data, "rows": len(rows), "metrics": metrics})
    show_metrics({f"{len(rows)} rows": metrics})


def read_rows(
    data: str, columns: "Columns", split: str, encoding: str | None, tag_scheme: "Scheme"
) -> "Examples":
    """All rows of a file, or one split of anything else."""
    from totune.data.sources import load_dataset, read_inputs

    if Path(data).expanduser().is_file():
        return read_inputs(data, columns, encoding=encoding, tag_scheme=tag_scheme)
    dataset = load_dataset(
        data,
        text=columns.text,
        pair=columns.pair,
        label=columns.label,
        task=columns.task,
        encoding=encoding,
        tag_scheme=tag_scheme,
    )
    return dict(dataset.splits())[split]  # type: ignore[index]
