"""`totune analyze label-cost`: learning curves over sizes of the training set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from totune.cli.analyze.common import Data, Json, Quiet, examples, output, output_folder, show
from totune.cli.options import COMMON_OPTIONS, parse_names, parse_seeds, read_settings, takes

EXAMPLES = examples(
    (
        "How many labels does tuning need? The same command again runs only what is missing:",
        "totune analyze label-cost reviews.csv --out studies/reviews",
    ),
    (
        "Chosen sizes and strategies:",
        "totune analyze label-cost reviews.csv --sizes 50,200,800,all "
        "--strategies feature-extraction,last-2,lora --seeds 5",
    ),
)


@takes(COMMON_OPTIONS)
def run(
    data: Data,
    sizes: Annotated[
        str, typer.Option(help="Training rows, with commas between; all for all of them.")
    ] = "100,300,1000,3000,all",
    strategies: Annotated[
        str | None,
        typer.Option(
            help="What is compared, with commas between; tf-idf (for tagging: most-frequent-tag), "
            "feature-extraction and fine-tuning if not named."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 3,7,11.")] = "3",
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            parser=output(),
            help="Where results and records are written; what is finished there, in a study too, "
            "is not run again.",
        ),
    ] = Path("analysis"),
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train each strategy on few rows, more and all: where does tuning begin to pay?"""
    from totune.analyses.findings import analyse
    from totune.analyses.inputs.learning_curves import open_learning_curves
    from totune.analyses.inputs.studies import AnalysisInputs
    from totune.analyses.label_cost import LabelCost
    from totune.cli.progress import RichProgress
    from totune.registry import build

    options = {
        "sizes": [name if name == "all" else int(name) for name in _sizes(sizes)],
        "strategies": parse_names(strategies) if strategies else None,
        "seeds": parse_seeds(seeds),
    }
    analysis = build(LabelCost, options, "analysis label-cost")
    chosen = read_settings(settings)
    output_folder(analysis.name, out)
    with RichProgress(quiet) as progress:
        setup = open_learning_curves(
            data,
            out,
            progress,
            strategies=analysis.strategies,
            seeds=analysis.seeds,
            **chosen,
        )
        findings = analyse(analysis, setup, AnalysisInputs(setup.context).about, progress)
    show(findings, out, (), json)


def _sizes(text: str) -> list[str]:
    from totune.errors import ConfigError

    names = parse_names(text)
    wrong = [name for name in names if name != "all" and not name.isdecimal()]
    if wrong or not names:
        raise ConfigError(f"--sizes {text!r} is no list of numbers or all, like 100,1000,all.")
    return names
