"""`totune pretrain`: a language model from text, of either kind, as an encoder."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, Quiet, examples, options_of, output, read_settings, takes
from totune.cli.output import emit, show_table
from totune.pretraining.settings import PretrainingSettings

if TYPE_CHECKING:
    from totune.pretraining.run import Pretrained

app = typer.Typer(
    no_args_is_help=True,
    help="Train a language model on text, or train one further. "
    "What is written loads as --model everywhere.",
)

Corpus = Annotated[
    list[str],
    typer.Argument(
        metavar="CORPUS",
        help="Text files (.txt, .xz, .gz), a paragraph per line and a blank line between "
        "documents; or hub:NAME.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        parser=output(),
        metavar="DIR",
        help="The folder to write. An interrupted training there goes on.",
    ),
]
Validation = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Text to hold out; the last 1% of the documents if not named."
    ),
]
SIZES = "tiny (tests: seconds), mini (a processor: an hour) or small (a GPU: half an hour)"


OPTIONS = options_of(PretrainingSettings)
ELMO_OPTIONS = [one for one in OPTIONS if not one.name.startswith("short_")]


@app.command(
    "bert",
    epilog=examples(
        (
            "From nothing, on a processor, an hour at most:",
            "totune pretrain bert part-00.txt.xz --out encoders/bert-mini --max-time 1h",
        ),
        (
            "Train an encoder further on the text of a task, then use it:",
            "totune pretrain bert reviews.txt --model minilm --max-time 20m "
            "--out encoders/reviews\n    totune compare reviews.csv --model encoders/reviews",
        ),
        (
            "As the first BERT was trained:",
            "totune pretrain bert wiki/*.xz --next-sentence --preset small --out encoders/bert",
        ),
        (
            "On two GPUs:",
            "torchrun --nproc-per-node 2 -m totune pretrain bert text.xz --out encoders/bert",
        ),
    ),
)
@takes(OPTIONS)
def bert(
    corpus: Corpus,
    out: Out,
    preset: Annotated[str, typer.Option(help=f"Size: {SIZES}.")] = "mini",
    model: Annotated[
        str | None,
        typer.Option(help="Train this one further: a hub id, a local folder, or an alias."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="A folder or hub id with a tokenizer; learnt from the corpus if none."),
    ] = None,
    validation: Validation = None,
    next_sentence: Annotated[
        bool, typer.Option("--next-sentence", help="Also learn which sentences are neighbours.")
    ] = False,
    whole_word_mask: Annotated[
        bool, typer.Option("--whole-word-mask", help="Mask all pieces of a word together.")
    ] = False,
    cased: Annotated[
        bool, typer.Option("--cased", help="Keep capitals and accents in what is learnt.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Train a masked language model (BERT) on text."""
    settings = PretrainingSettings(**read_settings(options, PretrainingSettings))
    from totune.cli.progress import RichProgress
    from totune.pretraining.bert import pretrain_bert

    with RichProgress(quiet) as progress:
        found = pretrain_bert(
            corpus,
            out,
            preset=preset,
            model=model,
            tokenizer=tokenizer,
            validation=validation,
            next_sentence=next_sentence,
            whole_word_mask=whole_word_mask,
            cased=cased,
            settings=settings,
            progress=progress,
        )
    _show(found, json)


@app.command(
    "elmo",
    epilog=examples(
        (
            "From nothing, on a processor, an hour at most:",
            "totune pretrain elmo part-00.txt.xz --out encoders/elmo-mini --max-time 1h",
        ),
        (
            "The same words as a BERT, held-out text of one's own:",
            "totune pretrain elmo part-*.xz --max-words 5000000 --validation valid.txt.xz "
            "--out encoders/elmo",
        ),
        (
            "Clipped as the official ones:",
            "totune pretrain elmo text.xz --clip 3 --out encoders/elmo",
        ),
    ),
)
@takes(ELMO_OPTIONS)
def elmo(
    corpus: Corpus,
    out: Out,
    preset: Annotated[str, typer.Option(help=f"Size: {SIZES}.")] = "mini",
    model: Annotated[
        str | None, typer.Option(help="Train this one further: a folder with an ELMo.")
    ] = None,
    validation: Validation = None,
    clip: Annotated[
        float | None,
        typer.Option(help="Largest magnitude in memories and outputs; no limit if not named."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Train a language model in both directions (ELMo) on text."""
    settings = PretrainingSettings(**read_settings(options, PretrainingSettings))
    from totune.cli.progress import RichProgress
    from totune.pretraining.elmo import pretrain_elmo

    with RichProgress(quiet) as progress:
        found = pretrain_elmo(
            corpus,
            out,
            preset=preset,
            model=model,
            validation=validation,
            clip=clip,
            settings=settings,
            progress=progress,
        )
    _show(found, json)


def _show(found: "Pretrained", json: bool) -> None:
    facts = found.facts
    if json:
        return emit({"model": found.folder, **facts})
    rows = [(name.replace("_", " "), f"{value:.4g}") for name, value in found.validation.items()]
    show_table(("held out", ""), rows)
    typer.echo(
        f"\n{facts['words']:,} words in {facts['seconds'] / 60:.1f} minutes, "
        f"{facts['tokens_per_second']:,.0f} tokens/s, {facts['matrix_share']:.0%} of the machine's "
        "matrix rate"
    )
    typer.echo(f"Encoder: {found.folder} (--model {shlex.quote(str(found.folder))})")
