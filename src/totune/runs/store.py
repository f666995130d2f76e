"""A study's folder: configuration, one record per run, the weights worth keeping."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from totune.errors import ConfigError
from totune.io import write_json
from totune.outputs import has_mark
from totune.runs.records import RunRecord, StudyInfo


def is_study(folder: Path) -> bool:
    """Whether a folder holds a study, finished or not."""
    return has_mark(folder / "study.json", "strategies", "seeds", "metric")


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
        return self.run_folder(fingerprint) / "weights"

    def save_info(self, info: StudyInfo) -> None:
        write_json(self.folder / "study.json", info.to_json())

    def info(self) -> StudyInfo:
        """What was compared.

        Raises:
            ConfigError: if the folder holds no study, or one that cannot be read.
        """
        path = self.folder / "study.json"
        if not path.is_file():
            raise ConfigError(f"{self.folder} holds no study (there is no study.json in it).")
        try:
            return StudyInfo.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{path} cannot be read as a study: {error}") from None

    def save(self, record: RunRecord, arrays: dict[str, np.ndarray]) -> None:
        """Writes predictions first, the record last: a record stands for a complete run."""
        folder = self.run_folder(record.fingerprint)
        folder.mkdir(parents=True, exist_ok=True)
        if record.predictions is not None:
            np.savez_compressed(folder / record.predictions, **arrays)  # type: ignore[arg-type]
        write_json(folder / "record.json", record.to_json())
        self.checkpoint(record.fingerprint).unlink(missing_ok=True)

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
            record = RunRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            on_unreadable(f"The record {path} cannot be read ({error}).")
            return None
        if record.predictions is None or (folder / record.predictions).is_file():
            return record
        on_unreadable(f"The predictions beside {path} are gone.")
        return None

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
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
