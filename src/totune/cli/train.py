"""`totune train`: one strategy, one seed, one model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from totune.cli.compare import Data
from totune.cli.options import Json, Quiet, examples, output
from totune.cli.output import emit, model_lines, show_metrics
from totune.cli.settings import COMMON_OPTIONS, read_settings, takes

EXAMPLES = examples(
    ("Fine-tune the default encoder:", "totune train reviews.csv --out models/reviews"),
    (
        "Another strategy, with its own options:",
        "totune train reviews.csv --strategy last-2 --num-train-epochs 5 --set head.layers=2",
    ),
    ("Then use it:", "totune predict models/reviews new.csv"),
)


@takes(COMMON_OPTIONS)
def run(
    data: Data,
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
    from totune.api import train
    from totune.cli.progress import RichProgress

    with RichProgress(quiet) as progress:
        model = train(data, strategy, out=out, seed=seed, progress=progress, **chosen)
    metrics = model.about["metrics"]
    if json:
        return emit({"model": out, "strategy": strategy, "seed": seed, "metrics": metrics})
    show_metrics(metrics)
    typer.echo("\n" + "\n".join(model_lines(out)))
