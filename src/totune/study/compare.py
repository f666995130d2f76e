"""`totune.compare`: a study from its settings to its report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from totune.data.folds import check_folds
from totune.data.sources import DataSource
from totune.encoders.sources import ALIASES
from totune.errors import ConfigError, RunError
from totune.export import check_model_folder
from totune.io import write_json
from totune.keywords import CompareKeywords
from totune.outputs import check_input_stays, check_output_folder, check_reports, output_path
from totune.progress import Progress
from totune.racing.execution import race
from totune.registry import takes_settings
from totune.runs.arguments import read_settings
from totune.runs.callbacks import Callback, CallbackList
from totune.runs.config import Candidate, addressed
from totune.runs.context import Context
from totune.runs.executors import create_executor
from totune.runs.prepare import prepare
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.run import Runs, configure
from totune.runs.runner import Runner, check_plans, leave_out_unfit, tokenize_splits
from totune.runs.settings import Settings
from totune.runs.store import Store, is_study
from totune.runs.study_time import expect_time
from totune.search.records import read_searches
from totune.study.best import save_best
from totune.study.describe import describe, describe_rows
from totune.study.study import BEST, SHOWN_ROWS, Study, summary_rows
from totune.text import counted, format_duration
from totune.tracking import Tracking, check_trackers


@takes_settings(Settings)
def compare(
    data: DataSource | None = None,
    *,
    out: str | Path = "study",
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    command: str = "",
    **settings: Unpack[CompareKeywords],
) -> Study:
    """Trains every strategy over every seed and says which is worth it.

        study = totune.compare(frame, strategies=["tf-idf", "last-2", totune.LoRA(r=4)], seeds=5)
        study.best_model().predict(["A joy from start to finish."])

    Args:
        data: a file, a folder with train/dev/test files, `hub:NAME`, or `example:NAME`; or data in
            memory: a data frame (pandas, polars), an Arrow table, a `datasets.Dataset` or
            `DatasetDict`, a list of records, a dict of columns, `(texts, labels)`, or a dict of
            splits of these. None with the train file as `train`.
        out: the study's folder. What is finished there already is not run again.
        callbacks: called at the beginning, every epoch and the end of every run.
        progress: shows what goes on; if None, it is logged under the name `totune`.
        command: the command line, recorded in the study.
        **settings: of the study.

    Returns:
        The study, with its report written and the recommended model saved in `best/`.

    Raises:
        ConfigError: with every fault of the settings, before anything is loaded.
        DataError: if the data cannot be used.
        ModelError: if the encoder cannot be had.
        RunError: if no run finished.
    """
    chosen = read_settings(settings, "compare")
    # What is compared where nothing was named depends on the data, but needs the encoder.
    reads_encoder = any(candidate.reads_encoder for candidate in chosen.candidates())
    given = chosen
    chosen, without = chosen.with_preset()
    executor = create_executor(chosen)
    check_search_storage(chosen)
    check_trackers(chosen.track)
    store = open_study(out, chosen.model)
    chosen = folds_of_study(chosen, store)
    context = prepare(data, chosen, progress or Progress(), reads_encoder, may_fold=True)
    chosen = settle_folds(chosen, context)
    say_positive(context)
    runner = Runner(context, store, executor, keep_all=chosen.keep_weights == "all")
    columns = context.dataset.columns
    candidates = chosen.candidates(columns.task, pairs=columns.pair is not None)
    runs, left_out = fitting_runs(candidates, chosen, context)
    tokenize_splits(runs, context)
    say_preset(runs, given, chosen, without, context)
    say_runs(runs, chosen, context)
    info = describe(runs, chosen, context, command)
    check_same_study(store, info, context.progress)
    if context.devices.is_main and not is_study(store.folder):
        store.save_info(info)  # marks the folder, before a search writes to it
    add_callbacks(callbacks, chosen.track, store.folder, context)
    searched = bool(read_searches(store.folder))
    if not searched:
        runner = expect(runs, chosen, runner)
    if chosen.searches:
        runs = search_options(candidates, runs, chosen, runner)
        info = describe(runs, chosen, context, command)
    if searched:
        runner = expect(runs, replace(chosen, search_trials=None, search_seconds=None), runner)
    info.data["warnings"] += left_out
    if context.devices.is_main:
        store.save_info(info)
    records = execute(runs, chosen, runner, info)
    if not records:
        raise RunError(f"The budget of {chosen.budget:.0f} s left no time for any run.")
    if all(record.status == "failed" for record in records):
        raise RunError(f"No run finished. The first one's message: {records[0].error}")
    context.devices.wait()  # all read what the main process wrote
    save_best(Study(store.folder), runs, runner)
    study = Study(store.folder)
    if context.devices.is_main:
        places = study.errors.places if study.errors else []
        write_json(store.folder / SHOWN_ROWS, describe_rows(context, places, chosen.texts))
        study.report()
    context.devices.wait()
    return study


def folds_of_study(chosen: Settings, store: Store) -> Settings:
    """The settings with the folds of the study that the folder holds, where none are named.

    So the same command goes on with it, also with one that was begun before there were folds.
    """
    if chosen.folds is not None or chosen.test_size is not None or not is_study(store.folder):
        return chosen
    try:
        return replace(chosen, folds=store.info().folds)
    except ConfigError:  # a damaged description, which `check_same_study` speaks of
        return chosen


def settle_folds(chosen: Settings, context: Context) -> Settings:
    """The settings with the number of folds that the data was given, and its seeds.

    Raises:
        ConfigError: if another setting needs one split.
        DataError: if a repetition tests on a class that it does not train on.
    """
    folds = context.folds
    chosen = replace(chosen, folds=1 if folds is None else folds.count)
    if folds is not None:
        chosen.check()  # what contradicts folds that the data was given unasked
        check_folds(folds, chosen.seed_list, context.dataset.name)
    return replace(chosen, seeds=chosen.seed_list)


def say_preset(
    runs: Runs, given: Settings, chosen: Settings, without: str, context: Context
) -> None:
    """Says what the preset has chosen, unless it is the standard one.

    Args:
        runs: of the study.
        given: the settings as a person made them.
        chosen: with what the preset and the data chose.
        without: why the preset's search is left out; "" if it is not.
        context: what the runs share.
    """
    if chosen.preset == "standard":
        return
    seeds = "seed" if context.folds is None else "repetition"
    parts = [
        given.strategies is None and ", ".join(dict.fromkeys(run.label for run in runs)),
        not given.searches
        and chosen.searches
        and f"a search of {chosen.search_trials} trials for each strategy (`search_trials`)",
        given.race is None and chosen.race and "a race (`race`)",
        given.seeds is None and f"{counted(len(chosen.seed_list), seeds)} (`seeds`)",
    ]
    said = "; ".join(part for part in parts if part)
    context.progress.say(f"Preset {chosen.preset}: {said or 'all it chooses was set'}.")
    if without:
        context.progress.warn(f"The preset's search is left out: {without}")


def expect(runs: Runs, chosen: Settings, runner: Runner) -> Runner:
    """Says how long the study will take here; gives the runner that says what is left of it."""
    missing, progress = runner.missing(runs), runner.context.progress
    if not missing or chosen.executor == "ray":
        return runner
    time = expect_time(missing, runner.context, chosen.jobs, " of this round" * bool(chosen.race))
    if time is None:
        return runner
    labels = list(dict.fromkeys(run.label for run in runs))
    trials, search = chosen.search_trials or 0, 0.0
    if chosen.searches:
        known = sum(time.of_strategy(label, trials) or 0.0 for label in labels)
        search = known if trials else (chosen.search_seconds or 0.0) * len(labels) / chosen.jobs
    progress.say(time.describe(missing, search, at_most=bool(chosen.race)))
    late = "" if chosen.budget is None else time.beyond(missing, chosen.budget)
    if chosen.budget is not None and late:
        progress.warn(
            f"The budget of {format_duration(chosen.budget)} is expected not to be enough for: "
            f"{late}. Name a larger `budget`, fewer `seeds` or fewer `strategies`."
        )
    return replace(runner, time=time)


def say_runs(runs: Runs, chosen: Settings, context: Context) -> None:
    """Says how many runs a cross-validation takes, before they begin."""
    if context.folds is None:
        return
    strategies, seeds = len({run.label for run in runs}), len(chosen.seed_list)
    context.progress.say(
        f"{len(runs)} runs: {strategies} {'strategy' if strategies == 1 else 'strategies'} x "
        f"{counted(seeds, 'repetition')} of {context.folds.count} folds; then the recommended one "
        f"is trained on all {len(context.folds.rows):,} rows."
    )


def open_study(out: str | Path, encoder: str) -> Store:
    """The store in a study's folder, which need not exist yet.

    Args:
        out: as a person named it.
        encoder: that the study uses.

    Raises:
        ConfigError: if the folder holds something else, or something that is not of totune where
            the best model and the reports belong, or if the encoder lies in the best model.
    """
    folder = output_path(out)
    check_output_folder(folder, "a study (study.json)", is_study)
    best = folder / BEST
    if best.is_symlink():
        raise ConfigError(
            f"{best} is a link to {best.readlink()}, and models are not written through links. "
            "Remove the link, or name another folder with `out`."
        )
    check_model_folder(best, setting=None)
    check_reports(folder)
    if encoder not in ALIASES:
        check_input_stays(encoder, best)
    return Store(folder)


def check_search_storage(chosen: Settings) -> None:
    """Finds out whether the storage can be used before anything is loaded."""
    if chosen.search_storage is not None:
        from totune.search.storage import check_storage

        check_storage(chosen.search_storage)


def say_positive(context: Context) -> None:
    """Says which class F1 is of, before anything is trained for it."""
    positive = context.task.positive
    if positive is not None:
        context.progress.say(
            f"F1 is that of the class {positive!r} (`positive_label` names the class)."
        )


def fitting_runs(
    candidates: Sequence[Candidate], chosen: Settings, context: Context
) -> tuple[Runs, list[str]]:
    """The runs of all candidates; of those that nobody named, only the ones that fit.

    Returns:
        The runs, and a sentence on each candidate that was left out.

    Raises:
        ConfigError: if a candidate that was named does not fit.
    """
    runs = configure(candidates, chosen.seed_list, context)
    if chosen.strategies is None:
        return leave_out_unfit(runs, context, addressed(candidates, chosen.options))
    check_plans(runs, context)
    return runs, []


def check_same_study(store: Store, info: StudyInfo, progress: Progress) -> None:
    """A folder holds one study; other data or another encoder belong in another folder.

    A damaged description says nothing of that, and is written again: runs are known by what their
    numbers depend on, so those of another study are not taken for this one's.
    """
    if not (store.folder / "study.json").is_file():
        return
    try:
        old = store.info()
    except ConfigError as error:
        progress.warn(str(error))
        return
    others = []
    if old.folds != info.folds:
        others.append(f"other splits (`folds={old.folds}`)")
    elif old.data.get("digest") != info.data["digest"]:
        others.append(f"other data ({old.name})")
    both = old.model and info.model  # runs that read no encoder go with any
    if both and old.model.get("fingerprint") != info.model["fingerprint"]:
        others.append(f"another encoder ({old.model.get('name')})")
    if others:
        raise ConfigError(
            f"{store.folder} holds a study of {' and '.join(others)}. "
            "Choose another folder with `out`."
        )


def add_callbacks(
    callbacks: Sequence[Callback], trackers: Sequence[str], folder: Path, context: Context
) -> None:
    """Has callbacks and trackers called for every run; of several processes in the main one."""
    if context.devices.is_main:
        tracking = [Tracking(trackers, folder, context.progress)] if trackers else []
        context.callback = CallbackList(*callbacks, *tracking)


def search_options(
    candidates: Sequence[Candidate], runs: Runs, chosen: Settings, runner: Runner
) -> Runs:
    """The runs of the candidates with the options that won on dev."""
    from totune.search.job import search_candidates  # Optuna is imported where it is used
    from totune.search.queue import SearchBudget

    fitting = {run.label for run in runs}
    kept = [each for each in candidates if (each.label or each.create().label) in fitting]
    # Of a cross-validation the first fold's train and dev rows are searched on.
    first = replace(runner, context=runner.context.first_fold)
    budget = SearchBudget(chosen.search_trials, chosen.search_seconds)
    seeds, storage = chosen.seed_list, chosen.search_storage
    winners = search_candidates(kept, first, budget, seeds[0], storage)
    return configure(winners, seeds, runner.context)


def execute(runs: Runs, chosen: Settings, runner: Runner, info: StudyInfo) -> list[RunRecord]:
    """Runs the study, in rounds where it is a race; `study.json` then lists the runs made."""
    context, store = runner.context, runner.store

    def show(records: list[RunRecord]) -> None:
        context.progress.table(summary_rows(records, info))

    if not chosen.race:
        return runner.execute(runs, chosen.budget, show)
    terms = chosen.tolerance, chosen.race_fraction, chosen.budget
    records, _ = race(runs, runner, *terms, show)
    if context.devices.is_main:
        store.save_info(replace(store.info(), runs=[record.fingerprint for record in records]))
    return records
