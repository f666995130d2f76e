"""Weights & Biases: a run of project `totune`, in a group for each study."""

import os
import shutil
from collections.abc import Mapping

from accelerate.tracking import WandBTracker

from totune.tracking.base import TrackedName, TrackedRun, Value


class WandbRun(TrackedRun):
    """Writes offline, for `wandb sync`, unless WANDB_MODE says `online`.

    WANDB_PROJECT and WANDB_DIR are heeded too. What was written offline of an earlier try goes; one
    that was sent is overwritten, since the run has the same id.
    """

    def __init__(self, run: TrackedName, parameters: Mapping[str, Value]) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        given = os.environ.get("WANDB_DIR")
        folder = run.files("wandb")
        if given is None:
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob(f"wandb/offline-run-*-{run.identity}"):
                shutil.rmtree(old, ignore_errors=True)
        self._tracker = WandBTracker(
            os.environ.get("WANDB_PROJECT", "totune"),
            name=run.title,
            group=run.study,
            id=run.identity,
            config=dict(parameters),  # accelerate's own way is for one run at a time
            dir=given or str(folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            reinit="create_new",
            settings={"silent": True, "console": "off"},
        )
        self._tracker.start()

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._tracker.log(dict(values), step=step)

    def end(self, error: str | None) -> None:
        if error is None:
            self._tracker.finish()
            return
        self._tracker.tracker.summary["error"] = error
        self._tracker.tracker.finish(exit_code=1)
