"""What an output folder holds: `features.json`, and a line per shard that was finished since."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from totune.errors import ConfigError
from totune.extraction.chunks import Mark
from totune.extraction.writing import unwritable, write_whole
from totune.outputs import check_output_folder
from totune.progress import Progress

FACTS = "features.json"
LOG = "shards.jsonl"  # of shards finished since FACTS was written


class Ledger:
    """The finished shards of a folder.

    Args:
        folder: new, empty, or of an extraction of the same configuration.
        configuration: what the shards' numbers depend on.

    Raises:
        ConfigError: the folder holds something else.
    """

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = read_facts(folder) if (folder / FACTS).exists() else None
        if self._facts is None:
            check_output_folder(folder, f"an extraction ({FACTS})", lambda _: False)
        else:
            self._check_same(configuration)
        self.marks: dict[int, Mark] = {mark.shard: mark for mark in self._listed()}

    def verify(self, progress: Progress) -> None:
        """Forgets shards whose files are gone or not what was written."""
        with progress.bar("Checking finished shards", len(self.marks), "shards") as bar:
            for mark in list(self.marks.values()):
                if not _is_whole(self._folder / mark.file, mark):
                    progress.warn(f"{mark.file} is damaged or missing: it is computed again.")
                    del self.marks[mark.shard]
                bar.advance()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Says what the folder will hold, before another shard is written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise unwritable(self._folder, fault) from None
        self._write(facts, complete=False)

    def add(self, mark: Mark) -> None:
        """Records a finished shard."""
        path = self._folder / LOG
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps(asdict(mark))}")
        except OSError as fault:
            raise unwritable(path, fault) from None
        self.marks[mark.shard] = mark

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Says what the folder holds, now that it holds everything."""
        self._write(facts, complete=True)

    def _write(self, facts: Mapping[str, Any], complete: bool) -> None:
        """Writes all shards that are known, after which the log has done its work."""
        marks = [self.marks[shard] for shard in sorted(self.marks)]
        counts = {
            "complete": complete,
            "rows": sum(mark.rows for mark in marks),
            "truncated": sum(mark.truncated for mark in marks),
            "shards": [asdict(mark) for mark in marks],
        }
        text = json.dumps({**facts, **counts}, indent=2, ensure_ascii=False)
        write_whole(self._folder / FACTS, f"{text}\n".encode())
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
                "Choose another folder with --out."
            )

    def _listed(self) -> list[Mark]:
        """The shards in the facts and then in the log, whose last line may be cut short."""
        found = [_mark(facts) for facts in (self._facts or {}).get("shards", [])]
        try:
            lines = (self._folder / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            lines = []
        found += [_mark(line) for line in lines]
        return [mark for mark in found if mark is not None]


def read_facts(folder: Path) -> dict[str, Any]:
    """What `features.json` says.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(facts.get("configuration"), dict):
            raise ValueError("it names no configuration")
    except FileNotFoundError:
        raise ConfigError(f"{folder} holds no features (there is no {FACTS} in it).") from None
    except (OSError, ValueError, AttributeError) as fault:
        raise ConfigError(f"{path} cannot be read as features: {fault}.") from None
    found: dict[str, Any] = facts
    return found


def _mark(written: Any) -> Mark | None:
    """A shard as it was written down, None if it cannot be read."""
    try:
        return Mark(**(json.loads(written) if isinstance(written, str) else written))
    except (ValueError, TypeError):
        return None


def _is_whole(path: Path, mark: Mark) -> bool:
    try:
        if path.stat().st_size != mark.bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == mark.sha256
    except OSError:
        return False


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12] + "..." if len(text) > 40 else text
