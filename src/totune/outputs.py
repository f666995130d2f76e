"""Where totune writes: into what is new, empty or its own, and never over anything else."""

import json
from collections.abc import Callable
from pathlib import Path

from totune.errors import ConfigError
from totune.io import is_unfinished

MADE_BY = "Made by totune"  # stands at the foot of every report, and is what marks it as ours
# The first file of each kind of folder; a process that is killed may leave half of it alone.
_FIRST = ("study.json", "totune.json", "features.json", "pretraining.json", "results.json")
_SHOWN = 3  # names of files that a message lists


def output_path(name: str | Path, setting: str = "out") -> Path:
    """The path of an output.

    Args:
        name: as a person gave it.
        setting: that it was given by.

    Raises:
        ConfigError: if the name is empty, which would mean the current folder.
    """
    if not str(name).strip():
        raise ConfigError(f"`{setting}` is empty; name a path (. is the current folder).")
    return Path(name)


def check_output_folder(
    folder: Path,
    what: str = "",
    is_ours: Callable[[Path], bool] | None = None,
    setting: str | None = "out",
) -> None:
    """Makes sure that a folder may be written to: it is new, empty, or of totune.

    Args:
        folder: need not exist.
        what: what of totune's it may hold ("a study").
        is_ours: whether a folder holds that; None where only a new or empty one will do.
        setting: that it was named by; None where it follows from another.

    Raises:
        ConfigError: if it is a file, a broken link, or holds anything else.
    """
    name = f"`{setting}` {folder}" if setting else str(folder)
    for path in (folder, *folder.parents):
        if not path.is_dir() and (path.exists() or path.is_symlink()):
            fault = "a file" if path.exists() else "a link to nothing"
            raise ConfigError(f"{name}: {path} is {fault}; name a folder.")
    if not folder.is_dir():
        return
    found = [path for path in folder.iterdir() if not is_unfinished(path, *_FIRST)]
    names = sorted(path.name for path in found)
    if not names or (is_ours is not None and is_ours(folder)):
        return
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    is_not = f" and is not {what} of totune" if what else ""
    raise ConfigError(
        f"{name} holds {shown}{is_not}, so nothing is written to it. Name a new or "
        "empty folder, or move what it holds elsewhere."
    )


def check_input_stays(name: str, folder: Path, setting: str = "model") -> None:
    """Makes sure that what a command reads does not lie in what it replaces.

    Args:
        name: of what it reads; need not be a path.
        folder: is about to be replaced; need not exist.
        setting: that `name` was given by.

    Raises:
        ConfigError: if it does.
    """
    place = Path(name).expanduser()
    if place.exists() and place.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"`{setting}` {name} lies in {folder}, which this command replaces. Name another "
            "folder with `out`, or copy what is read first."
        )


def has_mark(file: Path, *entries: str) -> bool:
    """Whether a file is a JSON object with these entries, as one of ours is."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.keys() >= set(entries)


def check_reports(folder: Path, *names: str) -> None:
    """Makes sure that reports about to be written replace none but older ones of totune.

    Args:
        folder: that they belong in.
        names: of the files; `report.html` and `report.md` if there are none.

    Raises:
        ConfigError: naming a file that is not of totune.
    """
    for path in (folder / name for name in names or ("report.html", "report.md")):
        if (path.exists() or path.is_symlink()) and not _is_report(path):
            raise ConfigError(
                f"{path} is not a report of totune, so it is not replaced. Move it elsewhere, or "
                "name another folder."
            )


def _is_report(path: Path) -> bool:
    try:
        return MADE_BY in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
