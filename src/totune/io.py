"""Files that are whole whenever they are there: written beside their place, then renamed."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path, sync: bool = False) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when the block ends.

    A reader finds the old file or the new one, never half of one. If the block raises, the old file
    stays and what was written is removed. What a killed process leaves is called
    `NAME.PROCESS-ID.tmp`.

    Args:
        path: the file; its folder is made if it is not there.
        sync: whether to wait until the disk has the content, which a power cut then cannot take.

    Raises:
        OSError: there is no room, or no right to write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one rename; raises `OSError` as `replacing` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 in one rename; raises `OSError` as `replacing` does."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, data: Any) -> None:
    """Writes indented JSON in one rename; raises `OSError` as `replacing` does."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
