"""Making one shard: everything a process needs for it, here or on another machine."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from totune.encoders.loading import Loaded
from totune.encoders.mixing import View
from totune.errors import RunError
from totune.extraction.chunks import Chunk, Mark
from totune.extraction.formats import SUFFIXES, shard_content
from totune.extraction.vectors import Embedder, Vectors
from totune.machine import Precision
from totune.progress import Progress


@dataclass(frozen=True)
class Recipe:
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

    def make(self, chunk: Chunk, embedder: Embedder, progress: Progress) -> Mark:
        """Computes a shard and writes it beside its place, then renames it.

        Raises:
            RunError: the file cannot be written.
        """
        vectors = embedder.embed(chunk.examples, progress)
        path = self.folder / f"shard-{chunk.shard:05d}{SUFFIXES[self.format]}"
        content = self._content(chunk, vectors)
        write_whole(path, content)
        return Mark(
            shard=chunk.shard,
            file=path.name,
            first=chunk.first,
            rows=len(chunk),
            digest=chunk.digest(),
            truncated=vectors.truncated,
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )

    def _content(self, chunk: Chunk, vectors: Vectors) -> bytes:
        kept = {name: chunk.kept(at) for at, name in enumerate(self.keep)}
        return shard_content(self.format, vectors, chunk.first, self.view.depths, kept)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is whole whenever it is there under its name.

    Raises:
        RunError: there is no room, or no right to write.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as fault:
        part.unlink(missing_ok=True)
        raise unwritable(path, fault) from None


def unwritable(path: Path, fault: OSError) -> RunError:
    """What to say of a file that cannot be written."""
    return RunError(
        f"{path} cannot be written ({fault.strerror or fault}). Finished shards are kept: once "
        "there is room, the same command does only the rest."
    )
