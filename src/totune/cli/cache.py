"""`totune cache`: what the frozen-prefix cache holds, and making room."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from totune.cli.options import Json, examples
from totune.cli.output import emit, show_table
from totune.text import format_bytes, parse_size

if TYPE_CHECKING:
    from totune.features.folder import CacheEntry

MOST_DAYS = 36_500  # a century: Python counts no more than 999,999,999
KEEP_DAYS = 30.0

app = typer.Typer(
    no_args_is_help=True,
    help="Look at the cache of frozen features, or make room. TOTUNE_CACHE names its folder.",
)


@app.command(
    "ls", epilog=examples(("What is stored, the least recently used first:", "totune cache ls"))
)
def list_entries(json: Json = False) -> None:
    """Show what is stored, the least recently used first."""
    from totune.features.folder import Folder

    cache = Folder()
    entries = cache.entries()
    total = sum(entry.nbytes for entry in entries)
    if json:
        facts = {"root": cache.root, "bytes": total, "budget_bytes": cache.budget_bytes}
        return emit({**facts, "entries": [_facts(entry) for entry in entries]})
    _show(entries)
    typer.echo(
        f"{_count(entries)}, {format_bytes(total)} of a budget of "
        f"{format_bytes(cache.budget_bytes)}, in {cache.root}"
    )


@app.command(
    "prune",
    epilog=examples(
        ("Remove what was not used for 30 days:", "totune cache prune"),
        ("Keep only what was used this week:", "totune cache prune --older-than 7"),
        ("Shrink it to 2 GB, the least recently used first:", "totune cache prune --max-size 2GB"),
        ("Remove everything:", "totune cache prune --max-size 0"),
    ),
)
def prune(
    older_than: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=MOST_DAYS,
            metavar="DAYS",
            help="Remove what was not used for this long (30 if no option is given).",
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Remove the least recently used until the rest fits."),
    ] = None,
    json: Json = False,
) -> None:
    """Remove stored features; they are computed again when needed."""
    from totune.features.folder import Folder

    limit = None if max_size is None else parse_size(max_size)
    days = KEEP_DAYS if older_than is None and limit is None else older_than
    removed = Folder().prune(None if days is None else timedelta(days=days), limit)
    freed = sum(entry.nbytes for entry in removed)
    if json:
        return emit({"bytes": freed, "removed": [_facts(entry) for entry in removed]})
    _show(removed)
    typer.echo(f"{_count(removed)} removed, {format_bytes(freed)} freed")


def _show(entries: Sequence["CacheEntry"]) -> None:

    if entries:
        show_table(
            ("last used", "size", "encoder", "features"),
            [
                (
                    _time(entry).strftime("%Y-%m-%d %H:%M"),
                    format_bytes(entry.nbytes),
                    entry.encoder,
                    entry.description,
                )
                for entry in entries
            ],
        )


def _facts(entry: "CacheEntry") -> dict[str, object]:
    return {
        "path": entry.path,
        "bytes": entry.nbytes,
        "encoder": entry.encoder,
        "description": entry.description,
        "created": entry.created,
        "last_used": _time(entry).isoformat(timespec="seconds"),
    }


def _time(entry: "CacheEntry") -> datetime:
    return datetime.fromtimestamp(entry.last_used, UTC)


def _count(entries: Sequence["CacheEntry"]) -> str:
    return "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
