"""`totune analyze adapter-ablation`: which layers' trained adapters matter."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from totune.cli.analyze.common import Data, Json, Out, Quiet, examples, output_folder, show
from totune.cli.options import parse_names
from totune.cli.predict import Encoding
from totune.errors import ConfigError

if TYPE_CHECKING:
    from totune.analyses.inputs.studies import AblationModels
    from totune.progress import Progress

EXAMPLES = examples(
    (
        "A model that totune train has saved:",
        "totune analyze adapter-ablation data/cola --model-dir model --metric matthews",
    ),
    (
        "Every seed that a study has kept (compare --keep-weights all), in its report:",
        "totune analyze adapter-ablation data/cola --study studies/cola",
    ),
)

ModelFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="A trained model with adapters: the folder of totune train, or a study's best/.",
    ),
]
Study = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Instead of one model: a study of DATA, whose kept models with adapters are all "
        "taken. Its report shows the result.",
    ),
]
Strategies = Annotated[
    str | None,
    typer.Option(
        help="Which of the study's strategies, with commas between; all with adapters if not named."
    ),
]
Split = Annotated[str, typer.Option(help="The rows that are scored: train, dev or test.")]
EncoderPlace = Annotated[
    str | None,
    typer.Option("--model", metavar="ENCODER", help="Where the encoder is, if it was moved."),
]
Metric = Annotated[
    str | None,
    typer.Option(help="What is scored; the study's metric, or the task's first, if not named."),
]


def run(
    data: Data,
    model_dir: ModelFolder = None,
    study: Study = None,
    strategies: Strategies = None,
    split: Split = "dev",
    metric: Metric = None,
    model: EncoderPlace = None,
    encoding: Encoding = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove the trained adapters of every span of layers and show what that costs."""
    if (model_dir is None) == (study is None):
        raise ConfigError(
            "Name either one trained model, with --model-dir FOLDER, or a study of the data, with "
            "--study DIR."
        )
    if strategies is not None and study is None:
        raise ConfigError("--strategies chooses among a study's models: name it with --study.")
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.cli.progress import RichProgress

    analysis = ANALYSES.create("adapter-ablation", {"split": split})
    folder = output_folder(analysis.name, out or study)
    given = {"model": model, "encoding": encoding, "metric": metric}
    with RichProgress(quiet) as progress:
        named = parse_names(strategies) if strategies else []
        opened = _open(data, model_dir, study, named, given, progress)
        findings = analyse(analysis, opened.models, opened.about, progress)
    show(findings, folder, opened.records, json)


def _open(
    data: str,
    model_dir: Path | None,
    study: Path | None,
    strategies: list[str],
    given: dict[str, str | None],
    progress: "Progress",
) -> "AblationModels":
    from totune.analyses.inputs.studies import open_folder, open_study

    if model_dir is not None:
        return open_folder(model_dir, data, progress=progress, **given)
    assert study is not None, "one of the two is named"
    changes = {name: value for name, value in given.items() if value is not None}
    return open_study(study, data, strategies=strategies, progress=progress, **changes)
