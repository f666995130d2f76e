"""The server of commands has imported what commands need, whichever tests were collected."""

import multiprocessing
import sys
from pathlib import Path

from tests.end_to_end.commands import LIMIT

LATE = ("optuna", "peft", "sklearn.linear_model", "totune.api", "transformers.modeling_utils")


def _note_missing(path: Path) -> None:
    path.write_text(" ".join(name for name in LATE if name not in sys.modules), encoding="utf-8")


def test_a_command_imports_nothing_large(tmp_path: Path) -> None:
    noted = tmp_path / "missing"
    server = multiprocessing.get_context("forkserver")
    process = server.Process(target=_note_missing, args=(noted,))
    process.start()
    process.join(LIMIT)
    assert noted.read_text(encoding="utf-8") == ""
