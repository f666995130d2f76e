"""`totune merge` and `totune convert-elmo`: folders that load without what they came from."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from totune.cli.options import Json, examples, output
from totune.cli.output import emit, model_lines
from totune.cli.predict import EncoderPlace, ModelFolder

MERGE_EXAMPLES = examples(
    ("Fold LoRA into the encoder:", "totune merge models/reviews --out models/reviews-merged"),
    (
        "Where the encoder is no longer where it was:",
        "totune merge model --out merged --model encoders/bert-base-uncased",
    ),
)


def merge(
    model_dir: ModelFolder,
    out: Annotated[
        Path,
        typer.Option(parser=output(), metavar="DIR", help="The folder to write; new or empty."),
    ],
    model: EncoderPlace = None,
    json: Json = False,
) -> None:
    """Make a model of adapters or LoRA whole: its encoder and tokenizer included.

    LoRA and IA3 are folded into the encoder's weights; adapters stay modules beside the encoder.
    """
    from totune import api

    done = api.merge(model_dir, out, model)
    if json:
        return emit({"model": out, "merged": done.merged, "note": done.note})
    how = "Merged" if done.merged else "Not merged, but with its encoder beside it"
    typer.echo(f"{how}: {done.note}\n")
    typer.echo("\n".join(model_lines(out)))


ELMO_EXAMPLES = examples(
    (
        "From the folder with options.json and weights.hdf5:",
        "totune convert-elmo downloads/elmo --out encoders/elmo",
    ),
    ("Then use it like any encoder:", "totune compare reviews.csv --model encoders/elmo"),
)


def convert_elmo(
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
    from totune.encoders.elmo import weights

    encoder = weights.convert_elmo(folder, out)
    size = sum(parameter.numel() for parameter in encoder.parameters())
    if json:
        return emit({"model": out, "parameters": size, "fingerprint": encoder.fingerprint()})
    typer.echo(f"{encoder.depth} layers of {encoder.width}, {size:,} parameters")
    typer.echo(f"\nEncoder: {out} (--model {shlex.quote(str(out))})")
