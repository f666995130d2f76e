"""A study's folder: configuration, one record per run, the weights worth keeping.

A record holds a hash of itself, of the predictions and of the weights beside it. What cannot be
read, or is not what was written, counts as missing: a caller is given the reason in a sentence, and
the run is done again.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from totune.errors import ConfigError
from totune.io import (
    check_files,
    file_hash,
    read_checked_json,
    settle,
    sweep,
    write_bytes,
    write_checked_json,
)
from totune.outputs import has_mark
from totune.runs.records import RunRecord, StudyInfo

WEIGHTS = "weights"
_DAMAGE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def is_study(folder: Path) -> bool:
    """Whether a folder holds a study, finished or not, be it one whose description is damaged."""
    if has_mark(folder / "study.json", "strategies", "seeds", "metric"):
        return True
    records = folder.glob("runs/*/record.json")
    return any(has_mark(path, "fingerprint", "strategy", "config") for path in records)


class Store:
    """Reads and writes one study folder.

    Args:
        folder: made on the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run_folder(self, fingerprint: str) -> Path:
        return self.folder / "runs" / fingerprint

    def checkpoint(self, fingerprint: str) -> Path:
        return self.run_folder(fingerprint) / "checkpoint.pt"

    def weights(self, fingerprint: str) -> Path:
        """The folder or file a run's trained parameters are kept in."""
        return self.run_folder(fingerprint) / WEIGHTS

    def save_info(self, info: StudyInfo) -> None:
        write_checked_json(self.folder / "study.json", info.to_json())

    def info(self) -> StudyInfo:
        """What was compared.

        Raises:
            ConfigError: if the folder holds no study, or one that cannot be read.
        """
        path = self.folder / "study.json"
        if not path.is_file():
            raise ConfigError(f"{self.folder} holds no study (there is no study.json in it).")
        try:
            return StudyInfo.from_json(read_checked_json(path))
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"{path} cannot be read as a study: {error}. The command that made the study writes"
                " it again; finished runs are kept."
            ) from None

    def save(self, record: RunRecord, arrays: dict[str, np.ndarray]) -> RunRecord:
        """Writes predictions first, the record last: a record stands for a complete run.

        Returns:
            The record with the hashes of the files beside it.
        """
        folder, weights = self.run_folder(record.fingerprint), self.weights(record.fingerprint)
        hashes = settle(weights) if weights.is_dir() else {}
        files = {f"{WEIGHTS}/{name}": found for name, found in hashes.items()}
        if record.predictions is not None:
            content = io.BytesIO()
            np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
            write_bytes(folder / record.predictions, content.getvalue())
            files[record.predictions] = file_hash(folder / record.predictions)
        record = replace(record, files=files)
        write_checked_json(folder / "record.json", record.to_json())
        self.checkpoint(record.fingerprint).unlink(missing_ok=True)
        return record

    def sweep(self, finished: Iterable[str]) -> None:
        """Removes what killed processes have left: unfinished files, and states of finished runs.

        Args:
            finished: fingerprints of the runs that need no checkpoint any more.
        """
        sweep(self.folder)
        for fingerprint in finished:
            self.checkpoint(fingerprint).unlink(missing_ok=True)

    def record(
        self, fingerprint: str, on_unreadable: Callable[[str], None] = lambda _: None
    ) -> RunRecord | None:
        """The record of a run, or None if it has none that can be read with its predictions.

        Args:
            fingerprint: of the run.
            on_unreadable: called with a sentence about a record that is there and of no use.
        """
        folder = self.run_folder(fingerprint)
        path = folder / "record.json"
        try:
            record = RunRecord.from_json(read_checked_json(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            on_unreadable(f"The record {path} cannot be read ({error}).")
            return None
        if record.predictions is None:
            return record
        try:
            self.predictions(record)
            check_files(folder, {n: h for n, h in record.files.items() if n == record.predictions})
        except FileNotFoundError:
            on_unreadable(f"The predictions beside {path} are gone.")
        except _DAMAGE as error:
            on_unreadable(f"The predictions beside {path} cannot be read ({error}).")
        else:
            return record
        return None

    def has_weights(
        self, record: RunRecord, on_damaged: Callable[[str], None] = lambda _: None
    ) -> bool:
        """Whether the trained parameters of a run were kept and are what was written.

        Args:
            record: of the run; one of an earlier version knows no hashes, so any file will do.
            on_damaged: called with a sentence about weights that are there and of no use.
        """
        folder = self.weights(record.fingerprint)
        if not folder.is_dir() or not any(folder.iterdir()):
            return False
        hashes = {n: found for n, found in record.files.items() if n.startswith(f"{WEIGHTS}/")}
        try:
            check_files(self.run_folder(record.fingerprint), hashes)
        except (OSError, ValueError) as error:
            on_damaged(f"The weights in {folder} cannot be used ({error}).")
            return False
        return True

    def records(self) -> list[RunRecord]:
        """Every readable record, in the order of strategies and seeds."""
        folders = sorted((self.folder / "runs").glob("*/record.json"))
        found = [self.record(path.parent.name) for path in folders]
        return sorted((r for r in found if r is not None), key=lambda r: (r.strategy, r.seed))

    def predictions(self, record: RunRecord) -> dict[str, np.ndarray]:
        """The arrays `targets`, `predictions` and (classification) `scores` of a finished run."""
        if record.predictions is None:
            return {}
        path = self.run_folder(record.fingerprint) / record.predictions
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
