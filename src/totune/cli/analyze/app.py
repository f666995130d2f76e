"""The commands of `totune analyze`: one per analysis."""

import typer

from totune.cli.analyze import (
    adapter_ablation,
    divergence,
    label_cost,
    layer_probe,
    mutual_information,
    overfitting_gap,
)

COMMANDS = {
    "adapter-ablation": adapter_ablation,
    "layer-probe": layer_probe,
    "mutual-information": mutual_information,
    "label-cost": label_cost,
    "divergence": divergence,
    "overfitting-gap": overfitting_gap,
}

app = typer.Typer(
    no_args_is_help=True,
    help="Look into encoders, texts and runs: why does one way of adapting beat another?",
)
for name, command in COMMANDS.items():
    app.command(name, epilog=command.EXAMPLES)(command.run)
