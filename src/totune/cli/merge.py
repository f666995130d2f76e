"""`totune merge`: a model that needs no encoder from elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from totune.cli.options import Json, examples, output
from totune.cli.output import emit, model_lines
from totune.cli.predict import EncoderPlace, ModelFolder

EXAMPLES = examples(
    ("Fold LoRA into the encoder:", "totune merge models/reviews --out models/reviews-merged"),
    (
        "Where the encoder is no longer where it was:",
        "totune merge model --out merged --model encoders/bert-base-uncased",
    ),
)


def run(
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
    from totune.api import merge

    done = merge(model_dir, out, model)
    if json:
        return emit({"model": out, "merged": done.merged, "note": done.note})
    how = "Merged" if done.merged else "Not merged, but with its encoder beside it"
    typer.echo(f"{how}: {done.note}\n")
    typer.echo("\n".join(model_lines(out)))
