"""TensorBoard: a folder of event files for each run."""

import re
import shutil
from collections.abc import Mapping

from accelerate.tracking import TensorBoardTracker

from totune.tracking.base import TrackedName, TrackedRun, Value


class TensorBoardRun(TrackedRun):
    """Writes `STUDY/tracking/tensorboard/TITLE FINGERPRINT`; the folder of an earlier try goes."""

    def __init__(self, run: TrackedName, parameters: Mapping[str, Value]) -> None:
        folder = run.files("tensorboard")
        title = re.sub(r"[^\w .=,+-]", "-", run.title)
        name = f"{title} {run.fingerprint[:8]}"
        shutil.rmtree(folder / name, ignore_errors=True)
        self._tracker = TensorBoardTracker(name, folder)
        self._tracker.start()
        self._tracker.store_init_configuration(dict(parameters))

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._tracker.log(dict(values), step=step)

    def end(self, error: str | None) -> None:
        if error is not None:
            self._tracker.log({"error": error})
        self._tracker.finish()
