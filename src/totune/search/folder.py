"""Where searches lie in a study's folder."""

import re
from pathlib import Path
from urllib.parse import quote

from totune.runs.store import write_json
from totune.search.records import SearchRecord

FOLDER = "search"


def record_path(study: Path, label: str) -> Path:
    """The file of a finished search; a label may hold what a file's name may not."""
    return study / FOLDER / f"{quote(label, safe=' ')}.json"


def lock_path(study: Path, label: str) -> Path:
    """What a process holds while it searches; by itself where the storage is the study's own."""
    return record_path(study, label).with_suffix(".lock")


def database_path(study: Path) -> Path:
    """The storage of a study that names no other."""
    return study / FOLDER / "search.db"


def checkpoint_path(study: Path, fingerprint: str) -> Path:
    """The state of a trial that has not ended."""
    return study / FOLDER / "checkpoints" / f"{fingerprint}.pt"


def write_search(study: Path, record: SearchRecord) -> None:
    """Writes a finished search into a study's folder."""
    write_json(record.to_json(), record_path(study, record.strategy))


def hide_passwords(text: str) -> str:
    """The same with *** for the password of every URL in it."""
    return re.sub(r"(://[^/\s:@]*):[^@\s]*@", r"\1:***@", text)
