"""The steps of `totune.compare` and `train`, in words that their code reads like."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from totune.encoders.sources import ALIASES
from totune.errors import ConfigError
from totune.export import check_model_folder
from totune.outputs import (
    check_input_stays,
    check_output_folder,
    check_reports,
    output_path,
)
from totune.racing.execution import race
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.execute import Runs
from totune.runs.executors.base import Executor
from totune.runs.prepare import configurations
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.settings import Settings
from totune.runs.store import Store, is_study
from totune.study.study import BEST
from totune.tracking import Tracking


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
    check_model_folder(best, setting="best")
    check_reports(folder)
    if encoder not in ALIASES:
        check_input_stays(encoder, best)
    return Store(folder)


def open_model(out: str | Path, encoder: str) -> Path:
    """A trained model's folder, which need not exist yet; arguments and faults as `open_study`."""
    folder = output_path(out)
    if encoder not in ALIASES:
        check_input_stays(encoder, folder)
    check_model_folder(folder)
    return folder


def check_folder(store: Store, info: StudyInfo) -> None:
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
            "Choose another folder with `out`."
        )


def say_positive(context: Context) -> None:
    """Says which class F1 is of, before anything is trained for it."""
    positive = context.task.positive
    if positive is not None:
        context.progress.say(
            f"F1 is that of the class {positive!r} (`positive_label` names the class)."
        )


def check_search_storage(chosen: Settings) -> None:
    """Finds out whether the storage can be used before anything is loaded."""
    if chosen.search_storage is not None:
        from totune.search.storage import check_storage

        check_storage(chosen.search_storage)


def track(chosen: Settings, folder: Path, context: Context) -> None:
    """Tells the trackers that were chosen of every run; of several processes the main one does."""
    if chosen.track and context.devices.is_main:
        context.callback = Tracking(chosen.track, folder, context.progress)


def search_options(
    members: Sequence[Candidate],
    runs: Runs,
    chosen: Settings,
    context: Context,
    store: Store,
    executor: Executor,
) -> Runs:
    """The runs of the members with the options that won on dev."""
    from totune.search.budget import Budget
    from totune.search.winners import search_members  # Optuna is imported where it is used

    fitting = {config.label for config, _ in runs}
    kept = [member for member in members if (member.label or member.create().label) in fitting]
    budget = Budget(chosen.search_trials, chosen.search_seconds)
    seeds, storage = chosen.seed_list, chosen.search_storage
    winners = search_members(kept, context, store, budget, seeds[0], storage, executor)
    return configurations(winners, seeds, context)


def run_race(
    runs: Runs,
    chosen: Settings,
    context: Context,
    store: Store,
    show: Callable[[list[RunRecord]], None],
    executor: Executor,
) -> list[RunRecord]:
    """Runs the study in rounds; `study.json` then lists the runs that were made."""
    keep_all = chosen.keep_weights == "all"
    terms = chosen.tolerance, chosen.race_fraction, chosen.budget
    records, _ = race(runs, context, store, *terms, show, keep_all, executor)
    if context.devices.is_main:
        store.save_info(replace(store.info(), runs=[record.fingerprint for record in records]))
    return records
