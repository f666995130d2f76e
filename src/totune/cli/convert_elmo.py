"""`totune convert-elmo`: an official ELMo as a folder that `--model` loads without h5py."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from totune.cli.options import Json, examples, output
from totune.cli.output import emit

EXAMPLES = examples(
    (
        "From the folder with options.json and weights.hdf5:",
        "totune convert-elmo downloads/elmo --out encoders/elmo",
    ),
    ("Then use it like any encoder:", "totune compare reviews.csv --model encoders/elmo"),
)


def run(
    folder: Annotated[Path, typer.Argument(help="Holds one *options.json and one *weights.hdf5.")],
    out: Annotated[
        Path,
        typer.Option(parser=output(), metavar="DIR", help="The folder to write; new or empty."),
    ],
    json: Json = False,
) -> None:
    """Convert an ELMo of the official format to safetensors.

    Reading the official weights needs the package h5py; the folder that is written does not.
    """
    from totune.encoders.elmo.weights import convert_elmo

    encoder = convert_elmo(folder, out)
    size = sum(parameter.numel() for parameter in encoder.parameters())
    if json:
        return emit({"model": out, "parameters": size, "fingerprint": encoder.fingerprint()})
    typer.echo(f"{encoder.depth} layers of {encoder.width}, {size:,} parameters")
    typer.echo(f"\nEncoder: {out} (--model {shlex.quote(str(out))})")
