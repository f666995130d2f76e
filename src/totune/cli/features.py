"""`totune features`: vectors of a large corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, Quiet, examples, output
from totune.cli.output import emit
from totune.cli.parsing import parse_layers, parse_names
from totune.cli.settings import DATA, MACHINE, option, takes

if TYPE_CHECKING:
    from totune.extraction import Extracted

VECTORS, OUTPUT = "Vectors", "Output"

EXAMPLES = examples(
    ("A vector per text, in shards:", "totune features reviews.csv --out vectors"),
    (
        "Every layer, beside the labels, as Parquet:",
        "totune features texts.jsonl.gz --model bert-base-uncased --layers all --format parquet "
        "--keep id,label --out vectors",
    ),
    (
        "On a Ray cluster whose machines share a disk:",
        "totune features /shared/texts --executor ray --address auto --out /shared/vectors",
    ),
    (
        "To read them, mapped and not loaded:",
        "from totune.extraction import open_features\n"
        "    for shard in open_features('vectors'): print(shard.first, shard.vectors.shape)",
    ),
)

OPTIONS = [
    option("model", str, VECTORS, "Encoder: a hub id, a local folder, or an alias.", "minilm"),
    option("layers", str, VECTORS, "top, all, or numbers as 0,6,12; 0 is the embeddings.", "top"),
    option(
        "pooling",
        str,
        VECTORS,
        "Over a text's tokens: mean, cls (the first token), max, or none: a vector per token.",
        "mean",
    ),
    option("max_length", int, VECTORS, "Texts are cut after this many word pieces.", 256),
    option("dtype", str, VECTORS, "float32 or float16.", "float32"),
    option(
        "text",
        str | None,
        DATA,
        "Column of the text: its name, or its number counted from 1. Detected if not named.",
        metavar="COLUMN",
    ),
    option(
        "pair",
        str | None,
        DATA,
        "Column of the second text, for pairs: its name or its number.",
        metavar="COLUMN",
    ),
    option("encoding", str | None, DATA, "Of the data files; UTF-8 if not named."),
    option(
        "format",
        str,
        OUTPUT,
        "safetensors (tensor 'vectors'; of every token also 'offsets', where each row begins), "
        "arrow or parquet (columns 'row' and 'vector', of several layers 'vector.0', ...).",
        "safetensors",
    ),
    option(
        "keep",
        str | None,
        OUTPUT,
        "Further columns of the data for arrow or parquet, with commas between; kept as text.",
        metavar="COLUMNS",
    ),
    option(
        "rows_per_shard",
        int | None,
        OUTPUT,
        "Memory grows with it. If not named 10,000, or fewer where vectors would take over 64 MB.",
    ),
    option("precision", str, MACHINE, "auto, bf16 or fp32.", "auto"),
    option(
        "executor",
        str,
        MACHINE,
        "local, or ray: a Ray cluster, on which data, encoder and --out have the same path on "
        "every machine.",
        "local",
    ),
    option(
        "address",
        str | None,
        MACHINE,
        "Of the Ray cluster; RAY_ADDRESS if not named, or else one started on this machine.",
    ),
]


@takes(OPTIONS)
def run(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A csv, tsv, jsonl or parquet file, a txt file with a text per line (text files "
            "also as .gz or .xz); a folder of such files; hub:NAME or example:NAME (train split).",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            parser=output(),
            metavar="DIR",
            help="The folder to fill. An interrupted extraction there goes on.",
        ),
    ],
    quiet: Quiet = False,
    json: Json = False,
    **settings: Any,
) -> None:
    """Compute an encoder's vectors for any number of rows, into shards, with flat memory.

    Rows keep their order; an empty text is a row too. Finished shards are never computed again,
    and rows that were appended to the data since are added.
    """
    from totune.api import extract_features
    from totune.cli.progress import RichProgress

    named = {name: value for name, value in settings.items() if value is not None}
    readers = {"layers": parse_layers, "keep": parse_names}
    chosen = {name: readers.get(name, _as_it_is)(value) for name, value in named.items()}
    with RichProgress(quiet) as progress:
        found = extract_features(data, out=out, progress=progress, **chosen)
    if json:
        return emit(_told(found))
    done = found.facts["last_command"]
    rate = done["rows"] / done["seconds"] if done["seconds"] else 0.0
    typer.echo(
        f"{len(found):,} rows in {len(found.facts['shards']):,} shards; {done['rows']:,} of them "
        f"computed now, {rate:,.0f} a second"
    )
    typer.echo(f"\nVectors: {out} (features.json says what they are)")


def _as_it_is(value: Any) -> Any:
    return value


def _told(found: "Extracted") -> dict[str, Any]:
    facts = found.facts
    return {
        "folder": found.folder,
        "rows": len(found),
        "shards": len(facts["shards"]),
        "truncated": facts["truncated"],
        "computed": facts["last_command"],
        "configuration": facts["configuration"],
    }
