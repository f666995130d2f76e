"""`totune features`: vectors of a large corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, Quiet, examples, options_of, output, read_settings, takes
from totune.cli.output import emit
from totune.extraction.settings import ExtractionSettings

if TYPE_CHECKING:
    from totune.extraction import Extracted

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


@takes(options_of(ExtractionSettings))
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

    chosen = read_settings(settings, ExtractionSettings)
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
