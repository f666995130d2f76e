"""The commands of `totune analyze`: one per analysis, the short ones here."""

from pathlib import Path
from typing import Annotated

import typer

from totune.cli.analyze import adapter_ablation, divergence, label_cost
from totune.cli.analyze.common import (
    Json,
    Set,
    examples,
    hidden_states_command,
    output_folder,
    show,
)
from totune.cli.options import parse_assignments

_PROBE = hidden_states_command(
    "layer-probe", "Train a linear probe on every block and show what it scores on dev."
)
_PROBE_EXAMPLES = examples(
    (
        "Each block of the default encoder:",
        "totune analyze layer-probe example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze layer-probe reviews.csv --study studies/reviews --strategies fine-tuning",
    ),
)
_INFORMATION = hidden_states_command(
    "mutual-information",
    "Estimate how many bits the hidden states of every block hold about the labels.",
)
_INFORMATION_EXAMPLES = examples(
    (
        "Each block of the default encoder, on dev:",
        "totune analyze mutual-information example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze mutual-information reviews.csv --study studies/reviews",
    ),
)
_GAP_EXAMPLES = examples(
    (
        "The gap of every strategy of a study, in the study's report:",
        "totune analyze overfitting-gap studies/reviews",
    ),
    (
        "Where a rule of two points, seen twice in a row, would stop:",
        "totune analyze overfitting-gap studies/reviews --set tolerance=0.02 --set gap_patience=2",
    ),
)

app = typer.Typer(
    no_args_is_help=True,
    help="Look into encoders, texts and runs: why does one way of adapting beat another?",
)
app.command("adapter-ablation", epilog=adapter_ablation.EXAMPLES)(adapter_ablation.run)
app.command("layer-probe", epilog=_PROBE_EXAMPLES)(_PROBE)
app.command("mutual-information", epilog=_INFORMATION_EXAMPLES)(_INFORMATION)
app.command("label-cost", epilog=label_cost.EXAMPLES)(label_cost.run)
app.command("divergence", epilog=divergence.EXAMPLES)(divergence.run)


@app.command("overfitting-gap", epilog=_GAP_EXAMPLES)
def overfitting_gap(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study's folder.")],
    set: Set = None,
    json: Json = False,
) -> None:
    """Show how far train leads dev, and where the gap rule would stop; nothing is trained."""
    from totune.analyses.base import ANALYSES
    from totune.analyses.findings import analyse
    from totune.progress import Progress
    from totune.study.study import Study

    analysis = ANALYSES.create("overfitting-gap", parse_assignments(set or []))
    opened = Study(study)
    output_folder(analysis.name, study)
    info = opened.info
    about = {
        "data": info.name,
        "digest": info.data.get("digest"),
        "metric": info.metric,
        "model": info.model.get("name"),
        "fingerprint": info.model.get("fingerprint"),
    }
    findings = analyse(analysis, (info, opened.records), about, Progress())
    show(findings, study, opened.records, json)
