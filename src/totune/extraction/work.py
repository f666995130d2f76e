"""One extraction, ready to go: rows, encoder, and how the one becomes files by the other."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from totune import io
from totune.data.memory import MemoryTable, memory_name
from totune.encoders.loading import Loaded, load_encoder
from totune.encoders.mixing import Reduction, View
from totune.errors import ConfigError
from totune.extraction.corpus import TextRows, open_texts
from totune.extraction.manifest import Chunk, ShardInfo, cut, pending, unwritable
from totune.extraction.settings import ExtractionSettings
from totune.extraction.shards import SUFFIXES, shard_content
from totune.extraction.vectors import Embedder
from totune.machine import Precision, choose_precision
from totune.progress import Progress
from totune.training.devices import Devices

_REDUCTIONS: dict[str, Reduction | None] = {
    "mean": "mean",
    "cls": "cls",
    "max": "max",
    "none": None,
}


@dataclass(frozen=True)
class ShardMaker:
    """How rows become the file of a shard; plain data.

    Attributes:
        folder: where the file goes.
        view: what is read of the encoder.
        keep: the names of the kept columns.
    """

    folder: Path
    view: View
    max_length: int
    precision: Precision
    dtype: str
    format: str
    keep: Sequence[str]

    def embedder(self, loaded: Loaded) -> Embedder:
        return Embedder(loaded, self.view, self.max_length, self.precision, self.dtype)

    def make(self, chunk: Chunk, embedder: Embedder, progress: Progress) -> ShardInfo:
        """Computes a shard and writes it beside its place, then renames it.

        Raises:
            RunError: the file cannot be written.
        """
        vectors = embedder.embed(chunk.examples, progress)
        path = self.folder / f"shard-{chunk.shard:05d}{SUFFIXES[self.format]}"
        kept = {name: chunk.kept(at) for at, name in enumerate(self.keep)}
        content = shard_content(self.format, vectors, chunk.first, self.view.depths, kept)
        try:
            io.write_bytes(path, content)
        except OSError as fault:
            raise unwritable(path, fault) from None
        return ShardInfo(
            shard=chunk.shard,
            file=path.name,
            first=chunk.first,
            rows=len(chunk),
            digest=chunk.digest(),
            truncated=vectors.truncated,
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )


@dataclass(frozen=True)
class Work:
    """One extraction, ready to go.

    Attributes:
        texts: the rows.
        rows_per_shard: how they are cut.
        maker: how a shard is made.
        fingerprint: of the encoder.
    """

    data: str
    texts: TextRows
    settings: ExtractionSettings
    rows_per_shard: int
    maker: ShardMaker
    loaded: Loaded
    fingerprint: str

    @property
    def configuration(self) -> dict[str, Any]:
        """What the shards depend on beside the rows, whose hashes they record."""
        maker, columns = self.maker, self.texts.columns
        return {
            "text": columns.text,
            "pair": columns.pair,
            "keep": list(columns.keep),
            "encoder": self.fingerprint,
            "layers": list(maker.view.depths),
            "pooling": maker.view.reduction or "none",
            "max_length": maker.max_length,
            "precision": maker.precision,
            "dtype": maker.dtype,
            "format": maker.format,
            "rows_per_shard": self.rows_per_shard,
        }

    def chunks(self, finished: Mapping[int, ShardInfo]) -> Iterator[Chunk]:
        """The shards that are left to do."""
        return pending(cut(self.texts, self.rows_per_shard), finished)


def prepare(
    data: str | Path | MemoryTable, settings: ExtractionSettings, out: Path, progress: Progress
) -> Work:
    """Finds the rows and their columns, and loads the encoder; raises as `extract` does."""
    devices = Devices()
    if devices.world > 1:
        raise ConfigError(
            "Features are computed by one process; `executor='ray'` spreads them over several."
        )
    if settings.executor == "ray" and not isinstance(data, str | Path):
        raise ConfigError(
            "`executor='ray'` reads the data on another machine, and these rows are in memory: "
            "write them to a file first, or leave `executor` out."
        )
    texts = open_texts(data, settings.text, settings.pair, settings.keep, settings.encoding)
    for note in texts.notes:
        progress.say(note)
    loaded = load_encoder(settings.model)
    progress.say(loaded.note)
    encoder = loaded.encoder
    _check_encoder(loaded, settings, texts)
    view = View(settings.depths(encoder.depth), _REDUCTIONS[settings.pooling])
    max_length = min(settings.max_length, encoder.max_length)
    maker = ShardMaker(
        folder=out,
        view=view,
        max_length=max_length,
        precision=choose_precision(settings.precision, devices.device),
        dtype=settings.dtype,
        format=settings.format,
        keep=texts.columns.keep,
    )
    rows = settings.shard_rows(len(view.depths), encoder.width, max_length)
    fingerprint = encoder.fingerprint()
    encoder.to(devices.device)
    name = str(data) if isinstance(data, str | Path) else memory_name(data)
    return Work(name, texts, settings, rows, maker, loaded, fingerprint)


def _check_encoder(loaded: Loaded, settings: ExtractionSettings, texts: TextRows) -> None:
    if not loaded.encoder.reads_words:
        return
    kind = loaded.encoder.kind
    if settings.pooling == "cls":
        raise ConfigError(
            f"pooling=cls: an encoder of type {kind} has no token that stands for the whole text. "
            "Use pooling=mean or pooling=max."
        )
    if texts.columns.pair is not None:
        raise ConfigError(
            f"An encoder of type {kind} reads the texts of a pair apart: extract each column with "
            "`text`."
        )
