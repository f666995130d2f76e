"""A finished run's model, handed over as a folder."""

from dataclasses import asdict
from pathlib import Path

from totune.baselines.base import Baseline
from totune.export import remove_model, save_baseline, save_model, write_seen
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.execute import Runs, best_run, execute
from totune.runs.executors.base import Executor
from totune.runs.records import RunRecord
from totune.runs.reopen import trained_model
from totune.runs.run import encoding_options_of
from totune.runs.store import Store
from totune.strategies.base import Strategy
from totune.study.study import Study


def save_best(
    study: Study,
    runs: Runs,
    context: Context,
    store: Store,
    executor: Executor | None = None,
) -> None:
    """Writes the advised strategy's best run (by dev score) into `best/`, in place of any other.

    A study keeps the weights of the best runs alone. Where a later command asks for fewer seeds,
    another run becomes the best; it runs again, to the same numbers.
    """
    label = study.advice.recommended or study.advice.provisional
    record = best_run(study.records, label, study.info.metric) if label else None
    if record is None:
        if context.devices.is_main:
            remove_model(study.best)
        return
    config, member = next(each for each in runs if each[0].fingerprint == record.fingerprint)
    if context.devices.agree(not store.weights(record.fingerprint).exists()):
        context.progress.say(f"{label} seed {record.seed} runs again: its weights were not kept")
        only = [(config, member)]
        [record] = execute(only, context, store, keep_all=True, executor=executor)
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
        write_seen(context.dataset.train, folder)
        return
    about["framing"] = asdict(encoding_options_of(config, member, context))
    model, trained = trained_model(config, member, context, weights)
    if model.encoder.inserted is not None:
        about["fingerprint"] = context.loaded.encoder.fingerprint()
    save_model(folder, model, context.loaded.tokenizer, context.task, about, trained)
    write_seen(context.dataset.train, folder)
