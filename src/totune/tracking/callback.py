"""The callback that passes runs on to trackers."""

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from totune.errors import ConfigError
from totune.progress import Progress
from totune.registry import did_you_mean
from totune.runs.callbacks import Callback
from totune.runs.config import RunConfig
from totune.runs.records import EpochRecord, RunRecord
from totune.tracking.base import TrackedName, TrackedRun, of_epoch, of_record, parameters
from totune.tracking.mlflow_run import MLflowRun
from totune.tracking.tensorboard_run import TensorBoardRun
from totune.tracking.wandb_run import WandbRun

TRACKERS: dict[str, type[TrackedRun]] = {
    "tensorboard": TensorBoardRun,
    "mlflow": MLflowRun,
    "wandb": WandbRun,
}
# SQLAlchemy and Alembic keep MLflow's local store.
_NEEDED = {
    "tensorboard": ("tensorboard",),
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
    "wandb": ("wandb",),
}


def check_trackers(names: Sequence[str]) -> None:
    """Checks that trackers can be used, before anything is loaded.

    Raises:
        ConfigError: with every unknown name and every package that is missing.
    """
    faults = []
    for name in names:
        if name not in TRACKERS:
            hint = did_you_mean(name, TRACKERS)
            faults.append(f"track: there is no tracker called {name!r}. {hint}")
            continue
        missing = [package for package in _NEEDED[name] if not _installed(package)]
        if missing:
            faults.append(
                f"track={name} needs {' and '.join(missing)}: pip install 'totune[track]'."
            )
    if faults:
        raise ConfigError(faults)


def _installed(package: str) -> bool:
    spec = find_spec(package)
    # A folder of that name, which W&B itself makes, is found as a package without an origin.
    return spec is not None and spec.origin is not None


class Tracking(Callback):
    """Records every run in trackers: its configuration, each epoch, and how it ended.

    The epochs of a run that continues are passed on from the first, so the run is recorded from
    its beginning and replaces its earlier self. A tracker that fails is named in a warning, and
    nothing more is sent to it.

    Args:
        names: of trackers.
        folder: of the study.
        progress: gets the warnings.
    """

    def __init__(self, names: Sequence[str], folder: Path, progress: Progress) -> None:
        self._names = list(dict.fromkeys(names))
        self._folder, self._progress = folder.resolve(), progress
        self._open: dict[str, dict[str, TrackedRun]] = {}  # by fingerprint and tracker

    def on_run_begin(self, config: RunConfig) -> None:
        self._end(config.fingerprint, None)  # of a try that did not come to its end
        run = TrackedName(f"{config.label} {config.place}", config.fingerprint, self._folder)
        opened = self._open[config.fingerprint] = {}

        def begin(name: str) -> None:
            opened[name] = TRACKERS[name](run, parameters(config))

        self._each(self._names, begin)

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self._log(config.fingerprint, of_epoch(epoch), epoch.epoch)

    def on_run_end(self, record: RunRecord) -> None:
        self._log(record.fingerprint, of_record(record), len(record.epochs))
        self._end(record.fingerprint, record.error)

    def _log(self, fingerprint: str, values: dict[str, float], step: int) -> None:
        opened = self._open.get(fingerprint, {})
        self._each(opened, lambda name: opened[name].log(values, step))

    def _end(self, fingerprint: str, error: str | None) -> None:
        opened = self._open.pop(fingerprint, {})
        self._each(opened, lambda name: opened[name].end(error))

    def _each(self, names: Iterable[str], do: Callable[[str], None]) -> None:
        for name in [name for name in names if name in self._names]:
            try:
                do(name)
            except Exception as error:  # whatever it is, the run is worth more
                self._names.remove(name)
                self._progress.warn(
                    f"{name} failed and receives nothing more: {type(error).__name__}: {error}"
                )
