"""The commands of `totune analyze`: one per analysis."""

import typer

from totune.cli.analyze import layer_probe

COMMANDS = {
    "layer-probe": layer_probe,
}

app = typer.Typer(
    no_args_is_help=True,
    help="Look into encoders, texts and runs: why does one way of adapting beat another?",
)
for name, command in COMMANDS.items():
    app.command(name, epilog=command.EXAMPLES)(command.run)
