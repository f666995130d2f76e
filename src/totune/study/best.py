"""A finished run's model, handed over as a folder."""

from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean

from totune.baselines.base import Baseline
from totune.export import remove_model, save_baseline, save_model, write_seen
from totune.runs.context import Context
from totune.runs.records import RunRecord, best_run
from totune.runs.repetitions import runs_of
from totune.runs.run import Run, Runs, on_all_rows
from totune.runs.runner import Runner
from totune.runs.store import Store
from totune.study.study import Study


def save_best(study: Study, runs: Runs, runner: Runner) -> None:
    """Writes the advised strategy's best run (by dev score) into `best/`, in place of any other.

    A study keeps the weights of the best runs alone. Where a later command asks for fewer seeds,
    another run becomes the best; it runs again, to the same numbers.
    """
    context, store = runner.context, runner.store
    label = study.advice.recommended or study.advice.provisional
    if label and context.folds is not None:
        return _save_final(study, label, runs, runner)
    record = best_run(study.records, label, study.info.metric) if label else None
    if record is None:
        if context.devices.is_main:
            remove_model(study.best)
        return
    run = next(each for each in runs if each.fingerprint == record.fingerprint)
    record = with_weights(run, record, runner)
    if context.devices.is_main:
        save_run(study.best, run, record, context, store)


def _save_final(study: Study, label: str, runs: Runs, runner: Runner) -> None:
    """Trains a strategy on all rows, after a cross-validation, and writes its model.

    Its thresholds, if these were tuned, are the means of those of the folds: it has no dev rows.
    """
    context, store = runner.context, runner.store
    run = on_all_rows(next(each for each in runs if each.label == label))
    rows = len(context.folds.rows) if context.folds else 0
    context.progress.say(f"{label} is trained on all {rows:,} rows for best/")
    [record] = replace(runner, keep_all=True).execute([run])
    if record.status == "failed":
        context.progress.warn(f"best/ holds no model: {label} failed when trained on all rows.")
    if context.devices.is_main and record.status == "failed":
        remove_model(study.best)
    elif context.devices.is_main:
        tuned = [run.thresholds for run in runs_of(study.records) if run.strategy == label]
        means = [fmean(each) for each in zip(*filter(None, tuned), strict=True)]
        record = replace(record, thresholds=means)
        save_run(study.best, run, record, context, store)
        store.save_info(replace(store.info(), final=run.fingerprint))
    context.devices.wait()  # all read what the main process wrote


def with_weights(run: Run, record: RunRecord, runner: Runner) -> RunRecord:
    """The record of a finished run, which runs again if its weights are gone or damaged."""
    context, store = runner.context, runner.store
    if context.devices.agree(not store.has_weights(record)):
        context.progress.say(
            f"{run.label} seed {run.seed} runs again: its weights were not kept, or are damaged"
        )
        [record] = replace(runner, keep_all=True).execute([run])
    return record


def save_run(folder: Path, run: Run, record: RunRecord, context: Context, store: Store) -> None:
    """Writes a finished run's model as a folder that `totune.load` reads."""
    context = context.of_run(run.config)
    about = {
        "strategy": record.strategy,
        "seed": record.seed,
        "metrics": {"dev": record.dev, "test": record.test},
        "max_length": context.max_length,
        "pairs": context.dataset.columns.pair is not None,
        "columns": asdict(context.dataset.columns),
        "precision": context.precision,
        "data": context.dataset.name,
        "split_seed": context.split_seed,
    }
    if context.pretrained is not None:
        place = Path(context.pretrained.reference).expanduser()
        about["model"] = str(place.resolve()) if place.is_dir() else context.pretrained.reference
    weights = store.weights(record.fingerprint)
    task = context.task.as_saved(record.thresholds)
    if isinstance(run.method, Baseline):
        embed = context.embed if run.method.needs_encoder else None
        fitted = run.method.load(weights, context.task, embed)
        save_baseline(folder, run.method, fitted, task, about)
        write_seen(context.dataset.train, folder)
        return
    about["framing"] = asdict(run.spec(context).encoding_options)
    model, trained = run.trained_model(context, weights)
    if model.encoder.inserted is not None:
        about["fingerprint"] = context.loaded.encoder.fingerprint()
    save_model(folder, model, context.loaded.tokenizer, task, about, trained)
    write_seen(context.dataset.train, folder)
