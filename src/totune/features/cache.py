"""The frozen-prefix cache: asks for a view, gets what is stored or what is computed now."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np

from totune._version import __version__
from totune.encoders.encoder import Encoder
from totune.encoders.mixing import View
from totune.features.entry_file import BadEntryError, Head, State, open_entry, state_of
from totune.features.fill import Computation
from totune.features.fingerprint import prefix_fingerprint
from totune.features.folder import CacheEntry, Folder
from totune.features.rows import Features, RowLayout
from totune.inputs.encodings import Encodings
from totune.progress import Progress
from totune.text import format_bytes

FORMAT = 1  # raised when what is computed or stored changes its meaning
IN_MEMORY = 256_000_000  # bytes; pooled views up to this together survive a disk that fails

Precision = Literal["fp32", "bf16"]


class FeatureCache:
    """Views of frozen prefixes, computed once and kept on disk.

    An entry is found by what it is made of: the weights and configuration of the blocks it needs,
    the word pieces, the view, the precision and the kind of device. Several processes may share a
    folder. A fault of the disk never ends a run: what cannot be kept is computed again.

    Args:
        root: the folder; by default $TOTUNE_CACHE, or `totune/features` in the user's cache folder.
        budget_bytes: what the folder may take; by default a quarter of the disk space that is free
            or taken by it.
        progress: told what is computed and what goes wrong.

    Attributes:
        seconds: time spent computing so far.
    """

    def __init__(
        self,
        root: Path | None = None,
        budget_bytes: int | None = None,
        progress: Progress = Progress(),  # noqa: B008 - silent and without state
    ) -> None:
        self.seconds = 0.0
        self._folder = Folder(root, budget_bytes)
        self._progress = progress
        self._open: dict[str, Features] = {}
        self._checked: dict[str, State] = {}  # entries whose every byte this process has checked
        self._refused: set[str] = set()
        self._account: dict[str, float] = {}
        self._held = 0  # bytes of features that live in memory only
        self._usable: bool | None = None

    @property
    def root(self) -> Path:
        return self._folder.root

    @property
    def budget_bytes(self) -> int:
        return self._folder.budget_bytes

    def features(
        self,
        encoder: Encoder,
        pieces: Encodings,
        view: View,
        precision: Precision,
        description: str = "",
    ) -> Features | None:
        """The `view` of `encoder`'s states over `pieces`, from the cache or computed now.

        Args:
            encoder: its blocks up to the deepest of the view must be frozen while this is used.
            pieces: the tokenised split.
            view: what is needed.
            precision: "bf16" runs the encoder under autocast and stores token views as bfloat16.
            description: what the data is called in messages and in `totune cache ls`.

        Returns:
            The features, or None when they do not fit the budget (said in one line per entry).
        """
        key = _key(encoder, pieces, view, precision)
        if key in self._refused:
            return None
        if key in self._open:
            self._touch(key)
            return self._handed(key)
        layout = RowLayout.of(pieces, view, encoder.width, precision == "bf16")
        words = description or f"{len(pieces)} examples"
        job = Computation(encoder, pieces, view, precision == "bf16", layout, words)
        found = self._find(key, job) or self._make(key, _head(key, job), job)
        if found is None:
            self._refused.add(key)
            return None
        self._open[key] = found
        return self._handed(key)

    def begin_account(self) -> None:
        """Starts to count anew what the features handed out from now on have cost."""
        self._account.clear()

    @property
    def account(self) -> float:
        """Seconds that computing what was handed out since `begin_account` took, whenever done.

        So each user is charged alike, whichever of them happened to come first.
        """
        return sum(self._account.values())

    @property
    def charges(self) -> dict[str, float]:
        """The account by entry, to be kept with a run that may be interrupted."""
        return dict(self._account)

    def charge(self, charges: Mapping[str, float]) -> None:
        """Puts on the account what an interrupted run had used."""
        self._account |= charges

    def release(self) -> None:
        """Lets go of what is stored: it may make room for other entries, and is opened again."""
        stored = [key for key in self._open if self._folder.path(key).is_file()]
        for key in stored:
            del self._open[key]

    def _handed(self, key: str) -> Features:
        features = self._open[key]
        self._account[key] = features.seconds
        return features

    def entries(self) -> list[CacheEntry]:
        """What is stored, the least recently used first."""
        return self._folder.entries()

    def prune(
        self, older_than: timedelta | None = None, max_bytes: int | None = None
    ) -> list[CacheEntry]:
        """Removes entries, and what killed processes left behind.

        Args:
            older_than: removes entries not used for this long.
            max_bytes: removes the least recently used until the rest fits; 0 removes all.

        Returns:
            The entries removed.
        """
        return self._folder.prune(older_than, max_bytes)

    def _find(self, key: str, job: Computation, report: bool = False) -> Features | None:
        path = self._folder.path(key)
        try:
            head, numbers = open_entry(path, key, job.layout.nbytes, self._checked.get(key))
        except FileNotFoundError:
            return None
        except BadEntryError as fault:
            if report:
                self._progress.warn(
                    f"The cached features of {job.description} in {path} are not used: {fault}. "
                    "They are computed again."
                )
            return None
        self._touch(key, checked=True)
        seconds = float(head.get("seconds", 0.0))
        return Features(job.view, job.layout, numbers.view(job.layout.numpy_dtype), seconds)

    def _touch(self, key: str, checked: bool = False) -> None:
        """Marks an entry as used; as long as nobody else writes to it, its check holds."""
        with suppress(OSError):  # pruned by another process: what is mapped stays
            path = self._folder.path(key)
            checked = checked or self._checked.get(key) == state_of(path.stat())
            self._folder.touch(key)
            if checked:
                self._checked[key] = state_of(path.stat())

    def _make(self, key: str, head: Head, job: Computation) -> Features | None:
        """Computes and stores, or keeps in memory what cannot be stored and is small."""
        in_memory: list[np.ndarray] = []
        if self._can_write():
            waiting = f"Another process computes the features of {job.description}; waiting for it."
            try:
                with self._folder.locked(key, waiting, self._progress):
                    return self._store(key, head, job, in_memory)
            except OSError as fault:
                self._warn_of_disk(job, fault)
        return self._hold(job, in_memory)

    def _can_write(self) -> bool:
        """Whether the folder can be used; if not, this is said once."""
        if self._usable is None:
            try:
                self._folder.prepare()
                self._usable = True
            except OSError as fault:
                self._usable = False
                self._progress.warn(
                    f"Features cannot be stored in {self.root} ({fault.strerror or fault}): small "
                    "ones are kept in memory, others are computed again in every epoch. Name "
                    "another folder in TOTUNE_CACHE."
                )
        return self._usable

    def _store(
        self, key: str, head: Head, job: Computation, in_memory: list[np.ndarray]
    ) -> Features | None:
        """Computes into a new entry; what is small goes to `in_memory` first. None: no room."""
        found = self._find(key, job, report=True)  # made or repaired by another process meanwhile
        if found is not None:
            return found
        with self._folder.writing(key, head, job.layout.nbytes, self._open) as writer:
            if writer is None:
                self._refuse(job)
                return None
            itemsize, before = job.layout.numpy_dtype.itemsize, self.seconds
            with self._timed():
                if self._is_small(job):
                    in_memory.append(job.numbers(self._progress))
                    writer.put(0, in_memory[0])
                else:
                    job.fill(lambda start, v: writer.put(start * itemsize, v), self._progress)
            writer.note(seconds=self.seconds - before)
        return self._find(key, job, report=True)

    def _hold(self, job: Computation, in_memory: list[np.ndarray]) -> Features | None:
        """Small features in memory, computed unless `in_memory` has them; None for others."""
        if not self._is_small(job):
            return None
        before = self.seconds
        if not in_memory:
            with self._timed():
                in_memory.append(job.numbers(self._progress))
        self._held += job.layout.nbytes
        return Features(job.view, job.layout, in_memory[0], self.seconds - before)

    def _is_small(self, job: Computation) -> bool:
        pooled = job.view.reduction is not None
        return pooled and self._held + job.layout.nbytes <= IN_MEMORY

    def _refuse(self, job: Computation) -> None:
        self._progress.say(
            f"The features of {job.description} ({format_bytes(job.layout.nbytes)}) do not fit the "
            f"cache's budget of {format_bytes(self.budget_bytes)}: they are computed again in "
            "every epoch, with the same results. Give it more with `cache_budget`."
        )

    def _warn_of_disk(self, job: Computation, fault: OSError) -> None:
        remedy = "kept in memory" if self._is_small(job) else "computed again in every epoch"
        self._progress.warn(
            f"The features of {job.description} ({format_bytes(job.layout.nbytes)}) cannot be "
            f"stored in {self.root} ({fault.strerror or fault}): they are {remedy}."
        )

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


def _key(encoder: Encoder, pieces: Encodings, view: View, precision: Precision) -> str:
    """The entry's name: a hash of what it is made of."""
    facts = {
        "format": FORMAT,
        "prefix": prefix_fingerprint(encoder, max(view.depths)),
        "pieces": pieces.identity,
        "depths": list(view.depths),
        "reduction": view.reduction,
        "precision": precision,
        "device": encoder.device.type,  # rounding differs; a run repeats to the bit on its own kind
    }
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _head(key: str, job: Computation) -> Head:
    tokens = "every token" if job.view.reduction is None else job.view.reduction
    layers = ", ".join(str(depth) for depth in job.view.depths)
    return {
        "key": key,
        "encoder": job.encoder.kind,
        "description": f"{job.description[:200]}: {tokens} of layer {layers}",
        "rows": len(job.pieces),
        "width": job.layout.width,
        "dtype": str(job.layout.dtype).removeprefix("torch."),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "totune": __version__,
    }
