"""The searches that lie in a study's folder, read for its report and advice."""

import json
from pathlib import Path

from totune.errors import ConfigError
from totune.search.folder import FOLDER
from totune.search.records import SearchRecord


def read_searches(folder: Path) -> list[SearchRecord]:
    """The finished searches in a study's folder, by file name; none where there are none.

    The folder may hold searches of other settings than the study's last.

    Raises:
        ConfigError: if a file there cannot be read.
    """
    return [_read(path) for path in sorted((folder / FOLDER).glob("*.json"))]


def _read(path: Path) -> SearchRecord:
    try:
        return SearchRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{path} cannot be read as a search of this version ({error}). Remove it, or search "
            "again with `search_trials`."
        ) from None
