"""Rows cut into shards, and what an output folder holds of them.

`features.json` lists the finished shards, each with a hash of its rows and of its file; those that
were finished since it was written stand in `shards.jsonl`, a line each.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from totune import io
from totune.data.examples import Examples
from totune.data.tables import Cell
from totune.errors import ConfigError, DataError, RunError
from totune.extraction.corpus import TextRow
from totune.outputs import check_output_folder
from totune.progress import Progress

FACTS = "features.json"
LOG = "shards.jsonl"  # of shards finished since FACTS was written
_UNFINISHED = ("shard-*.tmp", "shard-*.part", f"{FACTS}.*.tmp")  # left by killed processes


@dataclass(frozen=True)
class Chunk:
    """The rows of one shard.

    Attributes:
        shard: its number, from 0.
        first: the number of its first row among all, from 0.
    """

    shard: int
    first: int
    rows: tuple[TextRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def examples(self) -> Examples:
        texts = tuple(row.text for row in self.rows)
        pairs = tuple(row.pair for row in self.rows if row.pair is not None)
        return Examples(texts, pairs=pairs or None)

    def kept(self, at: int) -> list[Cell]:
        """The cells of the kept column number `at`."""
        return [row.kept[at] for row in self.rows]

    def digest(self, count: int | None = None) -> str:
        """A hash of the first `count` rows, of all if None."""
        hasher = hashlib.sha256()
        for text, pair, kept in self.rows[:count]:
            for cell in (text, pair, *kept):
                mark = b"\x1e" if cell is None else cell.encode("utf-8", "surrogatepass") + b"\x1f"
                hasher.update(mark)
        return hasher.hexdigest()[:32]


@dataclass(frozen=True)
class ShardInfo:
    """A finished shard.

    Attributes:
        shard: its number, from 0.
        file: its name in the folder.
        first: the number of its first row.
        rows: the number of its rows.
        digest: a hash of the rows that it was made of.
        truncated: the number of rows that were cut.
        bytes: the file's size.
        sha256: a hash of the file.
    """

    shard: int
    file: str
    first: int
    rows: int
    digest: str
    truncated: int
    bytes: int
    sha256: str

    @classmethod
    def read(cls, written: str | Mapping[str, Any]) -> "ShardInfo | None":
        """A shard as it was written down, None if it cannot be read."""
        try:
            return cls(**(json.loads(written) if isinstance(written, str) else written))
        except (ValueError, TypeError):
            return None


def cut(rows: Iterable[TextRow], rows_per_shard: int) -> Iterator[Chunk]:
    """Yields the rows shard by shard; holds one shard's at a time."""
    source = iter(rows)
    shard = 0
    while held := tuple(islice(source, rows_per_shard)):
        yield Chunk(shard, shard * rows_per_shard, held)
        shard += 1


def pending(chunks: Iterable[Chunk], finished: Mapping[int, ShardInfo]) -> Iterator[Chunk]:
    """Yields the shards that are not finished; what was finished is checked against its rows.

    Rows may have been appended since: then the shard that was the last is written again.

    Raises:
        ConfigError: a finished shard was made of other rows, or there are fewer rows than then.
        DataError: there is no row at all.
    """
    last = -1
    for chunk in chunks:
        last = chunk.shard
        info = finished.get(last)
        if info is not None and chunk.digest(info.rows) != info.digest:
            raise ConfigError(
                f"Rows {chunk.first + 1:,} to {chunk.first + info.rows:,} of the data are not "
                f"those that {info.file} was made of. Choose another folder."
            )
        if info is None or info.rows < len(chunk):
            yield chunk
    if last < 0:
        raise DataError("The data holds no rows.")
    beyond = [info.file for shard, info in sorted(finished.items()) if shard > last]
    if beyond:
        raise ConfigError(
            f"The data holds fewer rows than those that {beyond[0]} was made of. Choose another "
            "folder."
        )


class Manifest:
    """The finished shards of a folder.

    Args:
        folder: new, empty, or of an extraction of the same configuration.
        configuration: what the shards' numbers depend on.

    Raises:
        ConfigError: the folder holds something else.

    Attributes:
        shards: by their numbers.
    """

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = read_facts(folder) if (folder / FACTS).exists() else None
        if self._facts is None:
            check_output_folder(folder, f"an extraction ({FACTS})", lambda _: False)
        else:
            self._check_same(configuration)
        self.shards = {info.shard: info for info in self._listed()}

    def verify(self, progress: Progress) -> None:
        """Forgets shards whose files are gone or not what was written."""
        with progress.bar("Checking finished shards", len(self.shards), "shards") as bar:
            for info in list(self.shards.values()):
                if not _is_whole(self._folder / info.file, info):
                    progress.warn(f"{info.file} is damaged or missing: it is computed again.")
                    del self.shards[info.shard]
                bar.advance()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Says what the folder will hold, before another shard is written."""
        for pattern in _UNFINISHED:
            for path in self._folder.glob(pattern):
                path.unlink(missing_ok=True)
        self._write(facts, complete=False)

    def add(self, info: ShardInfo) -> None:
        """Records a finished shard."""
        path = self._folder / LOG
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps(asdict(info))}")
        except OSError as fault:
            raise unwritable(path, fault) from None
        self.shards[info.shard] = info

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Says what the folder holds, now that it holds everything."""
        self._write(facts, complete=True)

    def _write(self, facts: Mapping[str, Any], complete: bool) -> None:
        """Writes all shards that are known, after which the log has done its work."""
        shards = [self.shards[shard] for shard in sorted(self.shards)]
        counts = {
            "complete": complete,
            "rows": sum(info.rows for info in shards),
            "truncated": sum(info.truncated for info in shards),
            "shards": [asdict(info) for info in shards],
        }
        try:
            io.write_checked_json(self._folder / FACTS, {**facts, **counts})
        except OSError as fault:
            raise unwritable(self._folder / FACTS, fault) from None
        (self._folder / LOG).unlink(missing_ok=True)

    def _check_same(self, configuration: Mapping[str, Any]) -> None:
        found = (self._facts or {}).get("configuration", {})
        differing = [
            f"{name} {_shown(found.get(name))}, not {_shown(value)}"
            for name, value in configuration.items()
            if found.get(name) != value
        ]
        if differing:
            raise ConfigError(
                f"{self._folder} holds features of another configuration: {'; '.join(differing)}. "
                "Choose another folder."
            )

    def _listed(self) -> list[ShardInfo]:
        """The shards in the facts and then in the log, whose last line may be cut short."""
        found = [ShardInfo.read(facts) for facts in (self._facts or {}).get("shards", [])]
        try:
            lines = (self._folder / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            lines = []
        found += [ShardInfo.read(line) for line in lines]
        return [info for info in found if info is not None]


def read_facts(folder: Path) -> dict[str, Any]:
    """What `features.json` says.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    path = folder / FACTS
    try:
        facts = io.read_checked_json(path)
        if not isinstance(facts.get("configuration"), dict):
            raise ValueError("it names no configuration")
    except FileNotFoundError:
        raise ConfigError(f"{folder} holds no features (there is no {FACTS} in it).") from None
    except (OSError, ValueError, AttributeError) as fault:
        raise ConfigError(f"{path} cannot be read as features: {fault}.") from None
    found: dict[str, Any] = facts
    return found


def _is_whole(path: Path, info: ShardInfo) -> bool:
    try:
        if path.stat().st_size != info.bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == info.sha256
    except OSError:
        return False


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12] + "..." if len(text) > 40 else text


def unwritable(path: Path, fault: OSError) -> RunError:
    """What to say of a file that cannot be written."""
    return RunError(
        f"{path} cannot be written ({fault.strerror or fault}). Finished shards are kept: once "
        "there is room, the same command does only the rest."
    )
