"""The folder of cached entries: who may write, what fits, what goes first.

One entry is one file, `<key>.features`. A writer holds the lock of its key and fills
`<key>.<random>.tmp`, which it renames when finished, so that readers never see a half. A
temporary file has its final size from the start: it reserves its share of the budget.
"""

import errno
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from totune.features.entry_file import BadEntryError, EntryWriter, Head, file_size, read_head
from totune.io import sync_folder
from totune.progress import Progress

ABANDONED = timedelta(days=1)  # a temporary file older than this has no writer any more

_NAME = re.compile(r"([0-9a-f]{64})\.(?:([0-9a-f]{32})\.tmp|features|lock)")


@dataclass(frozen=True)
class CacheEntry:
    """One stored view, as `totune cache ls` shows it.

    Attributes:
        path: its file.
        nbytes: the file's size.
        encoder: the encoder's kind ("bert"), "?" if the file's head cannot be read.
        description: what the data was called, and the view, in words.
        created: when it was computed, ISO 8601.
        last_used: seconds since 1970.
    """

    path: Path
    nbytes: int
    encoder: str
    description: str
    created: str
    last_used: float

    @property
    def key(self) -> str:
        return self.path.name.split(".")[0]


def _default_root() -> Path:
    named = os.environ.get("TOTUNE_CACHE")
    return Path(named).expanduser() if named else user_cache_path("totune") / "features"


class Folder:
    """The files under `root`.

    Args:
        root: the folder; made when first written to. By default $TOTUNE_CACHE, or `totune/features`
            in the user's cache folder.
        budget_bytes: what all files together may take; by default a quarter of the disk space that
            is free or taken by this folder.
    """

    def __init__(self, root: Path | None = None, budget_bytes: int | None = None) -> None:
        self.root = root or _default_root()
        if budget_bytes is None:
            budget_bytes = (_free_bytes(self.root) + sum(size for _, size, _ in self._files())) // 4
        self.budget_bytes = budget_bytes

    def prepare(self) -> None:
        """Makes the folder; raises `OSError` if nothing can be written in it."""
        self.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.root):
            pass

    def path(self, key: str) -> Path:
        return self.root / f"{key}.features"

    def entries(self) -> list[CacheEntry]:
        """What is stored, the least recently used first."""
        files = sorted(self._files("features"), key=lambda file: file[2])
        return [_entry(path, size, used) for path, size, used in files]

    def touch(self, key: str) -> None:
        """Marks an entry as used now."""
        with suppress(OSError):
            os.utime(self.path(key))

    @contextmanager
    def locked(self, key: str, waiting: str, progress: Progress) -> Iterator[None]:
        """Holds the lock of `key`; says `waiting` first if another process has it."""
        lock = self._lock(key)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress.say(waiting)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def writing(
        self, key: str, head: Head, nbytes: int, kept: Collection[str]
    ) -> Iterator[EntryWriter | None]:
        """A writer for `key`, whose lock the caller holds; None if it does not fit the budget.

        The entry appears under its name when the block ends; if the block raises, nothing is left.

        Args:
            key: the entry.
            head: its readable facts.
            nbytes: of its numbers.
            kept: the keys that must not be evicted.
        """
        with FileLock(self.root / "budget.lock"):
            writer = self._reserve(key, head, nbytes, kept)
        if writer is None:
            yield None
            return
        try:
            yield writer
            writer.finish()
            writer.path.replace(self.path(key))
            sync_folder(self.root)
        finally:
            writer.discard()

    def prune(
        self, older_than: timedelta | None = None, max_bytes: int | None = None
    ) -> list[CacheEntry]:
        """Removes entries; see `FeatureCache.prune`."""
        if not self.root.is_dir():
            return []
        oldest = time.time() - older_than.total_seconds() if older_than is not None else -1.0
        with FileLock(self.root / "budget.lock"):
            self._sweep()
            total = sum(size for _, size, _ in self._files())
            removed = []
            for entry in self.entries():
                if entry.last_used <= oldest or (max_bytes is not None and total > max_bytes):
                    if _removed(entry.path):
                        removed.append(entry)
                        total -= entry.nbytes
            self._sweep_locks()
        return removed

    def _reserve(
        self, key: str, head: Head, nbytes: int, kept: Collection[str]
    ) -> EntryWriter | None:
        self._sweep(mine=key)
        self._discard(self.path(key))
        needed = file_size(nbytes)
        if not self._make_room(needed, kept):
            return None
        if needed > _free_bytes(self.root):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return EntryWriter(self.root / f"{key}.{uuid.uuid4().hex}.tmp", head, nbytes)

    def _make_room(self, needed: int, kept: Collection[str]) -> bool:
        """Evicts the least recently used entries, but none unless that makes enough room."""
        excess = sum(size for _, size, _ in self._files()) + needed - self.budget_bytes
        files = sorted(self._files("features"), key=lambda file: file[2])
        evictable = [(path, size) for path, size, _ in files if path.stem not in kept]
        if excess > sum(size for _, size in evictable):
            return False
        for path, size in evictable:
            if excess > 0 and _removed(path):
                excess -= size
        return excess <= 0

    def _discard(self, path: Path) -> None:
        """Removes what is in the place of an entry and is none."""
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)

    def _sweep(self, mine: str | None = None) -> None:
        """Removes temporary files whose writer is gone; `mine` is the key whose lock is held."""
        for path, _, changed in self._files("tmp"):
            key = path.name.split(".")[0]
            abandoned = time.time() - changed > ABANDONED.total_seconds()
            if key == mine or abandoned or self._is_free(key):
                _removed(path)

    def _sweep_locks(self) -> None:
        for path, _, _ in self._files("lock"):
            if not self.path(path.stem).exists() and self._is_free(path.stem):
                _removed(path)

    def _is_free(self, key: str) -> bool:
        try:
            with self._lock(key).acquire(timeout=0):
                return True
        except Timeout:
            return False

    def _lock(self, key: str) -> FileLock:
        return FileLock(self.root / f"{key}.lock")

    def _files(self, kind: str | None = None) -> Iterator[tuple[Path, int, float]]:
        """Path, size and time of change of this cache's own files; others are not touched."""
        if not self.root.is_dir():
            return
        for path in self.root.iterdir():
            if _NAME.fullmatch(path.name) and (kind is None or path.suffix == f".{kind}"):
                with suppress(OSError):  # removed by another process meanwhile
                    facts = path.stat()
                    yield path, facts.st_size, facts.st_mtime


def _entry(path: Path, size: int, used: float) -> CacheEntry:
    try:
        head = read_head(path)
    except BadEntryError as fault:
        return CacheEntry(path, size, "?", f"unusable: {fault}", "?", used)
    facts = [str(head.get(name, "?")) for name in ("encoder", "description", "created")]
    return CacheEntry(path, size, facts[0], facts[1], facts[2], used)


def _removed(path: Path) -> bool:
    """Removes a file; False where that is refused (on Windows, while someone reads it)."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _free_bytes(root: Path) -> int:
    existing = next(folder for folder in (root, *root.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(existing).free
