"""The Python calls: `totune.compare`, `totune.train`, `totune.load`, `totune.merge`."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from totune import export
from totune.advice import Advice, Ensemble, advise, find_ensembles
from totune.analyses.findings import sections
from totune.baselines.base import Baseline
from totune.errors import ConfigError, RunError
from totune.export import Merged, Predictor, load_model, save_baseline, save_model
from totune.progress import Progress
from totune.registry import build
from totune.report.comparison import comparison_table
from totune.report.formatting import duration, score, spread
from totune.report.groups import by_strategy
from totune.report.table import Table
from totune.report.write import ReportPaths, write_report
from totune.statistics import Summary
from totune.strategies.base import Strategy
from totune.study.config import RunConfig, addressed
from totune.study.describe import describe
from totune.study.execute import (
    Runs,
    best_run,
    check_plans,
    execute,
    leave_out_unfit,
    tokenize_splits,
)
from totune.study.prepare import Settings, configurations, prepare
from totune.study.records import RunRecord, StudyInfo
from totune.study.reopen import trained_model
from totune.study.run import Context, framing_of, run
from totune.study.store import Store

BEST = "best"


class Study:
    """A study's folder, read: records, statistics, advice, the best model.

    Args:
        folder: where `compare` put it.

    Raises:
        ConfigError: if the folder holds no study.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._store = Store(self.folder)
        self.info: StudyInfo = self._store.info()
        order = {name: place for place, name in enumerate(self.info.strategies)}
        found = [self._store.record(fingerprint) for fingerprint in self.info.runs]
        kept = [record for record in found if record is not None]
        self.records: list[RunRecord] = sorted(kept, key=lambda r: (order[r.strategy], r.seed))

    @cached_property
    def advice(self) -> Advice:
        """What the records say about the question."""
        tolerance = float(self.info.settings["tolerance"])
        return advise(self.records, self._predictions, self.info.metric, tolerance)

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """What runs score together."""
        return find_ensembles(self.records, self._predictions, self.info.metrics)

    @cached_property
    def _predictions(self) -> dict[str, dict[str, np.ndarray]]:
        """The arrays of every run, by fingerprint."""
        return {record.fingerprint: self._store.predictions(record) for record in self.records}

    def table(self) -> Table:
        """The main comparison as plain data."""
        return comparison_table(self.info, self.records, self.advice)

    def report(self) -> ReportPaths:
        """Writes `report.html` and `report.md` anew from the records."""
        return write_report(
            self.folder,
            self.info,
            self.records,
            self.advice,
            sections(self.folder, self.records),
            self.ensembles,
        )

    @property
    def best(self) -> Path:
        """The folder of the recommended model, for `totune.load`."""
        return self.folder / BEST

    def to_json(self) -> dict[str, Any]:
        """Everything a program wants to know: the answer, the means, the places."""
        return {
            "folder": str(self.folder),
            "report": str(self.folder / "report.html"),
            "best": str(self.best) if self.best.is_dir() else None,
            "metric": self.info.metric,
            "advice": self.advice.to_json(),
            "ensembles": [ensemble.to_json() for ensemble in self.ensembles],
            "runs": [
                {"strategy": r.strategy, "seed": r.seed, "status": r.status, "test": r.test}
                for r in self.records
            ],
        }


def compare(
    data: str | Path | Mapping[str, str | Path],
    *,
    out: str | Path = "study",
    progress: Progress | None = None,
    command: str = "",
    **settings: Any,
) -> Study:
    """Trains every strategy over every seed and says which is worth it.

    Args:
        data: a file, a folder with train/dev/test files, `hub:NAME`, or `example:NAME`.
        out: the study's folder. What is finished there already is not run again.
        progress: told of everything that goes on; silent by default.
        command: the command line, recorded in the study.
        **settings: see `totune.study.prepare.Settings`.

    Returns:
        The study, with its report written and the recommended model saved in `best/`.

    Raises:
        ConfigError: with every fault of the settings, before anything is loaded.
        DataError: if the data cannot be used.
        ModelError: if the encoder cannot be had.
        RunError: if no run finished.
    """
    progress = progress or Progress()
    chosen = build(Settings, settings, "compare")
    chosen.check()
    store = _open_store(Path(out))
    context = prepare(data, chosen, progress)
    members = chosen.check(context.dataset.columns.task)
    runs: Runs = configurations(members, chosen.seed_list, context)
    left_out: list[str] = []
    if chosen.strategies is None:
        named = addressed(members, chosen.options)
        runs, left_out = leave_out_unfit(runs, context, named)
    else:
        check_plans(runs, context)
    tokenize_splits(runs, context)
    info = describe(runs, chosen, context, command)
    info.data["warnings"] += left_out
    _check_folder(store, info)
    if context.devices.is_main:
        store.save_info(info)

    def show(records: list[RunRecord]) -> None:
        context.progress.table(summary_rows(records, info))

    keep_all = chosen.keep_weights == "all"
    records = execute(runs, context, store, chosen.budget, show, keep_all)
    if not records:
        raise RunError(f"The budget of {chosen.budget:.0f} s left no time for any run.")
    if all(record.status == "failed" for record in records):
        raise RunError(f"No run finished. The first one's message: {records[0].error}")
    context.devices.wait()  # all read what the main process wrote
    study = Study(store.folder)
    save_best(study, runs, context, store)
    if context.devices.is_main:
        study.report()
    context.devices.wait()
    return study


def summary_rows(records: Sequence[RunRecord], info: StudyInfo) -> list[dict[str, str]]:
    """One row per strategy for the live table: runs, mean and spread of each metric, seconds."""
    rows = []
    for group in by_strategy(info, records):
        row = {"strategy": group.strategy, "runs": f"{len(group.usable)}/{len(info.seeds)}"}
        row |= {f"test {m}": _mean_text(m, group.summary(m)) for m in info.metrics}
        row["time per run"] = duration(group.seconds())
        rows.append(row)
    return rows


def _mean_text(metric: str, found: Summary | None) -> str:
    if found is None:
        return score(metric, None)
    mean = score(metric, found.mean)
    return mean if found.n < 2 else f"{mean} ± {spread(metric, found.std)}"


def _open_store(folder: Path) -> Store:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the output.")
    return Store(folder)


def _check_folder(store: Store, info: StudyInfo) -> None:
    """A folder holds one study; other data or another encoder belong in another folder."""
    if not (store.folder / "study.json").is_file():
        return
    old = store.info()
    others = []
    if old.data.get("digest") != info.data["digest"]:
        others.append(f"other data ({old.name})")
    if old.model.get("fingerprint") != info.model["fingerprint"]:
        others.append(f"another encoder ({old.model.get('name')})")
    if others:
        raise ConfigError(
            f"{store.folder} holds a study of {' and '.join(others)}. "
            "Choose another folder with --out."
        )


def save_best(
    study: Study,
    runs: Runs,
    context: Context,
    store: Store,
) -> None:
    """Writes the advised strategy's best run (by dev score) into `best/`, and nothing else there.

    A study keeps the weights of the best runs alone. Where a later command asks for fewer seeds,
    another run becomes the best; it runs again, to the same numbers.
    """
    if context.devices.is_main:
        shutil.rmtree(study.best, ignore_errors=True)
    label = study.advice.recommended or study.advice.leaning
    record = best_run(study.records, label, study.info.metric) if label else None
    if record is None:
        return
    config, member = next(each for each in runs if each[0].fingerprint == record.fingerprint)
    if context.devices.agree(not store.weights(record.fingerprint).exists()):
        context.progress.say(f"{label} seed {record.seed} runs again: its weights were not kept")
        record = run(config, member, context, store)
    if context.devices.is_main:
        save_run(study.best, config, member, record, context, store)


def save_run(
    folder: Path,
    config: RunConfig,
    member: Strategy | Baseline,
    record: RunRecord,
    context: Context,
    store: Store,
) -> None:
    """Writes a finished run's model as a folder that `totune.load` reads."""
    place = Path(context.loaded.reference).expanduser()
    about = {
        "strategy": record.strategy,
        "seed": record.seed,
        "metrics": {"dev": record.dev, "test": record.test},
        "max_length": context.max_length,
        "pairs": context.dataset.columns.pair is not None,
        "columns": asdict(context.dataset.columns),
        "model": str(place.resolve()) if place.is_dir() else context.loaded.reference,
        "precision": context.precision,
        "data": context.dataset.name,
        "split_seed": context.split_seed,
    }
    weights = store.weights(record.fingerprint)
    if isinstance(member, Baseline):
        embed = context.embed if member.needs_encoder else None
        fitted = member.load(weights, context.task, embed)
        save_baseline(folder, member, fitted, context.task, about)
        return
    about["framing"] = asdict(framing_of(config, member, context))
    model, trained = trained_model(config, member, context, weights)
    if model.encoder.inserted is not None:
        about["fingerprint"] = context.loaded.encoder.fingerprint()
    save_model(folder, model, context.loaded.tokenizer, context.task, about, trained)


def train(
    data: str | Path | Mapping[str, str | Path],
    strategy: str | Mapping[str, Any] = "fine-tuning",
    *,
    out: str | Path = "model",
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Predictor:
    """Trains one strategy with one seed and saves the model.

    Args:
        data: as for `compare`.
        strategy: a strategy or baseline.
        out: the model's folder; an interrupted run continues from its last epoch.
        seed: for initialisation and data order.
        progress: told of everything that goes on.
        **settings: see `totune.study.prepare.Settings`.

    Returns:
        The trained model.

    Raises:
        TotuneError: as `compare`; `RunError` if the run failed.
    """
    progress = progress or Progress()
    chosen = build(Settings, {**settings, "strategies": [strategy], "seeds": [seed]}, "train")
    members = chosen.check()
    folder = Path(out)
    store = Store(_open_store(folder).folder / "training")
    context = prepare(data, chosen, progress)
    runs = configurations(members, [seed], context)
    tokenize_splits(runs, context)
    check_plans(runs, context)
    record = execute(runs, context, store)[0]
    if record.status == "failed":
        raise RunError(f"The run failed: {record.error}")
    config, member = runs[0]
    if context.devices.is_main:
        save_run(folder, config, member, record, context, store)
    context.devices.wait()
    return load_model(folder)


def load(folder: str | Path, model: str | None = None) -> Predictor:
    """A trained model from the folder of `train`, or from a study's `best/`.

    Args:
        folder: the model's.
        model: for adapters or LoRA, where their encoder is, if it was moved.

    Raises:
        ModelError: if the folder or the encoder is missing or damaged, or the encoder is not the
            one that the model was trained with.
    """
    return load_model(Path(folder), model)


def merge(folder: str | Path, out: str | Path, model: str | None = None) -> Merged:
    """Makes a model of adapters or LoRA whole: a folder that needs no encoder from elsewhere.

    Args:
        folder: of such a model.
        out: a folder that is new or empty.
        model: where the encoder is, if it was moved.

    Returns:
        Whether the modules could be merged into the encoder's weights, and if not, why.

    Raises:
        ConfigError: if `out` holds something.
        ModelError: as `load`, and if there is nothing to merge.
    """
    return export.merge(Path(folder), Path(out), model)
