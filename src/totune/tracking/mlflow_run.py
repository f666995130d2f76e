"""MLflow: a run of an experiment for each study, in a database of the study or on a server."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from accelerate.tracking import MLflowTracker

from totune.tracking.base import TrackedName, TrackedRun, Value

TAG = "totune.run"


class MLflowRun(TrackedRun):
    """Writes `STUDY/tracking/mlflow/mlflow.db` unless MLFLOW_TRACKING_URI names another store.

    An earlier try is deleted as MLflow deletes: it can be restored.
    """

    def __init__(self, run: TrackedName, parameters: Mapping[str, Value]) -> None:
        # Nothing leaves the machine unasked, and a server that is away is soon given up.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self._run = run
        with self._store() as files:
            experiment = run.study.replace("'", " ")
            self._tracker = MLflowTracker(
                experiment, files, nested_run=True, run_name=run.title, tags={TAG: run.identity}
            )
            self._begin(parameters)

    def _begin(self, parameters: Mapping[str, Value]) -> None:
        self._tracker.start()
        try:
            self._id: str = self._tracker.tracker.info.run_id
            self._tracker.store_init_configuration(dict(parameters))
            self._delete_others(self._tracker.tracker.info.experiment_id)
        finally:
            _mlflow().end_run("RUNNING")  # it goes on, but is no more the one that others log to

    def _delete_others(self, experiment: str) -> None:
        client, same = _mlflow().MlflowClient(), f"tags.`{TAG}` = '{self._run.identity}'"
        for found in client.search_runs([experiment], same):
            if found.info.run_id != self._id:
                client.delete_run(found.info.run_id)

    def log(self, values: Mapping[str, float], step: int) -> None:
        with self._store():
            self._tracker.log(dict(values), step=step, run_id=self._id)

    def end(self, error: str | None) -> None:
        with self._store():
            client = _mlflow().MlflowClient()
            if error is not None:
                client.set_tag(self._id, "error", error)
            client.set_terminated(self._id, "FINISHED" if error is None else "FAILED")

    @contextmanager
    def _store(self) -> Iterator[str | None]:
        """The study's database while the block runs, and the folder of its files.

        None where another store is set.
        """
        mlflow = _mlflow()
        if mlflow.is_tracking_uri_set():
            yield None
            return
        folder = self._run.files("mlflow")
        folder.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(f"sqlite:///{(folder / 'mlflow.db').as_posix()}")
        try:
            yield (folder / "files").as_uri()
        finally:
            mlflow.set_tracking_uri(None)


def _mlflow() -> Any:
    """The package, which is there only if someone asked for it."""
    return import_module("mlflow")
