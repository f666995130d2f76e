"""`totune reproduce`: a table or figure of a paper, its numbers beside ours."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import (
    STUDY_OPTIONS,
    Json,
    Quiet,
    examples,
    optional,
    output,
    read_settings,
    takes,
)
from totune.cli.output import emit
from totune.text import hide_secrets

if TYPE_CHECKING:
    from totune.recipes.check import CheckedStudy
    from totune.recipes.recipe import Recipe

EXAMPLES = examples(
    ("The sparse baselines of Hart's paper, in seconds:", "totune reproduce hart-sparse"),
    (
        "Its comparison of frozen, unfrozen and last two layers, on a tenth of the data:",
        "totune reproduce hart-bert --data-dir data --fraction 0.1 --seeds 3",
    ),
    (
        "What is there of a larger table, and what is wrong, before anything is trained:",
        "totune reproduce adapters-glue --data-dir data --check",
    ),
    (
        "With another encoder, searched options and four runs at once; what fails is left out:",
        "totune reproduce peters-adaptation --model bert=bert-base-uncased,elmo=encoders/elmo "
        "--search 20 --jobs 4 --keep-going",
    ),
    ("What there is to reproduce:", "totune list recipes"),
)
# What a recipe says itself (totune.recipes.planned.OF_RECIPES; a test compares the two).
_OF_RECIPES = frozenset(
    {"strategies", "candidate", "head", "metric", "text", "pair", "label", "task", "tag_scheme"}
    | {"encoding", "positive_label", "where", "label_map"}
)
RECIPE_OPTIONS = [optional(one) for one in STUDY_OPTIONS if one.name not in _OF_RECIPES]


@takes(RECIPE_OPTIONS)
def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name of totune list recipes.")],
    data_dir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the recipe's data lies.")
    ] = Path("data"),
    out: Annotated[
        Path | None,
        typer.Option(
            parser=output(),
            metavar="DIR",
            help="The report's folder; the recipe's name if not named.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Train nothing: say what is absent, and what is wrong."),
    ] = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Leave out rows with faults and studies that fail; their cells say why.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Run a recipe of a paper's table or figure; the paper's numbers stand beside ours.

    The recipe's own settings hold where an option is left out; of several encoders, --model is
    ENCODER=MODEL, with commas between.
    """
    chosen = read_settings(settings)
    from totune.cli.progress import RichProgress
    from totune.recipes.reproduce import check_recipe, reproduce

    if check:
        return _show(*check_recipe(recipe, data_dir=data_dir, **chosen), json)
    command = hide_secrets(shlex.join(["totune", *sys.argv[1:]]))
    with RichProgress(quiet) as progress:
        folder = reproduce(
            recipe,
            data_dir=data_dir,
            out=out,
            keep_going=keep_going,
            progress=progress,
            command=command,
            **chosen,
        )
    if json:
        return emit({"recipe": recipe, "folder": folder, "report": folder / "report.html"})
    typer.echo((folder / "report.md").read_text(encoding="utf-8"))
    typer.echo(f"Report: {folder / 'report.html'}")


def _show(recipe: "Recipe", checked: "Sequence[CheckedStudy]", json: bool) -> None:
    """What a check found: each study's data, rows and what is absent."""
    studies: list[dict[str, Any]] = [
        {
            "data": one.study.data,
            "encoder": one.study.encoder,
            "source": str(one.study.source) if one.study.source is not None else None,
            "train_rows": one.train_rows,
            "full_train_rows": recipe.data[one.study.data].train_rows,
            "rows": [row.label for row in one.study.rows],
            "lacking": one.study.lacking,
        }
        for one in checked
    ]
    if json:
        return emit({"recipe": recipe.name, "studies": studies})
    for study in studies:
        name = f"{study['data']}, {study['encoder']}"
        if study["lacking"]:
            typer.echo(f"{name}: not run: {study['lacking']}")
            continue
        rows, full = study["train_rows"], study["full_train_rows"]
        part = f" of {full:,}" if full is not None and rows != full else ""
        typer.echo(f"{name}: {rows:,}{part} train rows; {', '.join(study['rows'])}")
    typer.echo(f"{recipe.name}: nothing is wrong.")
