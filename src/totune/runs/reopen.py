"""A study opened again: its data and encoder, and the models its runs have trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from totune.errors import ConfigError
from totune.metrics import get_metric
from totune.model import Model
from totune.progress import Progress
from totune.registry import build
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.model_spec import strategy_of
from totune.runs.prepare import prepare
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.run import Run
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.strategies.base import STRATEGIES
from totune.tasks.base import task_from_json


@dataclass(frozen=True)
class FinishedRun:
    """A strategy's run whose weights were kept.

    Attributes:
        record: what it left behind.
        run: what it was.
        weights: the folder of its trained parameters.
    """

    record: RunRecord
    run: Run
    weights: Path

    def model(self, context: Context) -> Model:
        """The model as the run has trained it."""
        return self.run.trained_model(context, self.weights)[0]


def reopen(
    folder: Path, data: str | Path, changes: Mapping[str, Any], progress: Progress
) -> tuple[Context, StudyInfo, list[RunRecord]]:
    """What the runs of a study share, from its own settings, and the runs.

    Of a cross-validation these are the first fold's: other models have trained on its test rows.

    Args:
        folder: the study's.
        data: what it was made of; `study.json` knows its content, not its place.
        changes: settings that differ now, such as where the encoder lies.
        progress: receives notes, warnings and progress.

    Raises:
        ConfigError: if the folder holds no study, or one of other data or another encoder.
    """
    store = Store(folder)
    info = store.info()
    # The metric that a rule chose then is not chosen anew.
    get_metric(info.metric)  # a person's function must have been named in this process
    settings = {**info.settings, "metric": info.metric, **changes, "seeds": info.seeds}
    context = prepare(data, build(Settings, settings, "study"), progress)
    others = []
    if context.dataset.digest() != info.data["digest"]:
        others.append(f"its data ({info.name}) is not what {data} holds")
    # A study of baselines that read no encoder names none.
    if info.model and context.loaded.encoder.fingerprint() != info.model["fingerprint"]:
        others.append(f"its encoder ({info.model['name']}) is not {context.loaded.reference}")
    if others:
        raise ConfigError(f"{folder} is another study: {' and '.join(others)}.")
    # Runs of an older version may count their classes in another order.
    context.task = task_from_json(info.data["task"])

    def warn(fault: str) -> None:
        progress.warn(f"{fault} Its run is left out.")

    found = (store.record(fingerprint, warn) for fingerprint in info.runs)
    records = [record for record in found if record is not None]
    if context.folds is not None:
        progress.say("Of the cross-validation the first fold is looked into, by its own models.")
        context = context.first_fold
        records = [record for record in records if (record.seed, record.fold) == (0, 1)]
    return context, info, records


def finished_runs(
    folder: Path, records: Sequence[RunRecord], labels: Sequence[str], progress: Progress
) -> list[FinishedRun]:
    """The runs of these strategies whose weights were kept; tells of those that are left out.

    Args:
        folder: the study's.
        records: its runs.
        labels: of strategies; all where there is none.
        progress: told what is missing.

    Raises:
        ConfigError: if no run of the study is of a strategy of that name.
    """
    known = list(dict.fromkeys(record.strategy for record in records))
    unknown = [label for label in labels if label not in known]
    if unknown:
        told = ", ".join(known) or "none, since no run has ended"
        raise ConfigError(f"{folder} has no strategy {unknown[0]!r}. Known: {told}.")
    wanted = [record for record in records if not labels or record.strategy in labels]
    failed = [f"{each.strategy} seed {each.seed}" for each in wanted if each.status == "failed"]
    if failed:
        progress.warn(f"Runs that failed are left out: {', '.join(failed)}.")
    store = Store(folder)
    finished = (_finished(record, store) for record in wanted if record.status == "finished")
    runs = [run for run in finished if run is not None]

    def warn(fault: str) -> None:
        progress.warn(f"{fault} The same command that made the study trains it again.")

    kept = [run for run in runs if store.has_weights(run.record, warn)]
    if len(kept) < len(runs):
        progress.warn(
            f"The weights of {len(runs) - len(kept)} of {len(runs)} runs were not kept, so they "
            "are left out. A study with `keep_weights='all'` keeps those of every seed."
        )
    return kept


def _finished(record: RunRecord, store: Store) -> FinishedRun | None:
    """A run of a strategy; None for a baseline."""
    config = RunConfig(**record.config)
    if config.strategy["name"] not in STRATEGIES.names():
        return None
    run = Run(config, strategy_of(config.strategy))
    return FinishedRun(record, run, store.weights(record.fingerprint))
