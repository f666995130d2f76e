"""Vectors of any number of rows, in shards: each is written once, and read past ever after."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from totune import machine
from totune.data.memory import MemoryTable
from totune.extraction.manifest import Manifest, ShardInfo
from totune.extraction.settings import ExtractionSettings
from totune.extraction.shards import Extracted, open_features
from totune.extraction.vectors import OnOneBar
from totune.extraction.work import Work, prepare
from totune.progress import Progress
from totune.text import counted


def extract(
    data: str | Path | MemoryTable, settings: ExtractionSettings, out: Path, progress: Progress
) -> Extracted:
    """Computes the vectors of every row into a folder; goes on where an earlier call ended.

    Args:
        data: a file, a folder of files, `hub:NAME` or `example:NAME`; or a table in memory.
        settings: what is extracted.
        out: the folder.
        progress: receives notes, warnings and progress.

    Returns:
        The folder, ready to be read.

    Raises:
        ConfigError: for wrong settings, or a folder that holds something else.
        DataError: if a row cannot be read; what was finished before it stays.
        ModelError: if the encoder cannot be had.
        RunError: if a shard cannot be written; what was finished stays.
    """
    settings.check()
    work = prepare(data, settings, out, progress)
    manifest = Manifest(out, work.configuration)
    facts = _facts(work)
    manifest.verify(progress)
    manifest.begin(facts)
    there = sum(info.rows for info in manifest.shards.values())
    if there:
        shards = counted(len(manifest.shards), "shard")
        progress.say(f"{counted(there, 'row')} are there already, in {shards}.")
    started, total = time.perf_counter(), work.texts.total
    left = None if total is None else max(0, total - there)
    with progress.bar(f"Computing features of {work.data}", left, "rows") as bar:
        made = _made(work, manifest, OnOneBar(progress, bar))
    manifest.finish(facts | {"last_command": _account(made, time.perf_counter() - started)})
    found = open_features(out)
    _tell_truncated(work, found, progress)
    return found


def _made(work: Work, manifest: Manifest, progress: Progress) -> list[ShardInfo]:
    """Makes what is not there, and records each shard as it is done."""
    made = []
    for info in _infos(work, manifest, progress):
        manifest.add(info)
        made.append(info)
    return made


def _infos(work: Work, manifest: Manifest, progress: Progress) -> Iterable[ShardInfo]:
    if work.settings.executor == "ray":
        from totune.extraction.on_ray import make_shards

        return make_shards(work, manifest.shards, progress)
    embedder = work.maker.embedder(work.loaded)
    chunks = work.chunks(manifest.shards)
    return (work.maker.make(chunk, embedder, progress) for chunk in chunks)


def _facts(work: Work) -> dict[str, Any]:
    encoder = work.loaded.encoder
    return {
        "totune": machine.versions()["totune"],
        "data": work.data,
        "encoder": {
            "name": work.loaded.name,
            "reference": work.loaded.reference,
            "kind": encoder.kind,
            "fingerprint": work.fingerprint,
            "layers": encoder.depth,
            "width": encoder.width,
        },
        "configuration": work.configuration,
        "device": encoder.device.type,
        "versions": machine.versions(),
    }


def _account(made: list[ShardInfo], seconds: float) -> dict[str, Any]:
    return {
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "shards": len(made),
        "rows": sum(info.rows for info in made),
        "seconds": round(seconds, 3),
    }


def _tell_truncated(work: Work, found: Extracted, progress: Progress) -> None:
    count = found.facts["truncated"]
    if count:
        limit = work.maker.max_length
        at_limit = limit >= work.loaded.encoder.max_length
        remedy = "this encoder reads no more" if at_limit else "`max_length` raises the limit"
        progress.warn(
            f"{count:,} of {len(found):,} rows ({100 * count / len(found):.1f}%) are longer than "
            f"{limit} word pieces and were cut; {remedy}."
        )
