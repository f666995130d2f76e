"""Runs on parts of the training set: what a learning curve is made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from totune.analyses.findings import SIZES
from totune.data.splits import shrink
from totune.progress import Progress
from totune.registry import build
from totune.runs.records import RunRecord

if TYPE_CHECKING:
    from totune.runs.config import Candidate
    from totune.runs.context import Context
    from totune.runs.run import Run, Runs
    from totune.runs.settings import Settings
    from totune.runs.store import Store

TEXT_BASELINE, WORD_BASELINE = "tf-idf", "most-frequent-tag"
DEFAULTS = ("feature-extraction", "fine-tuning")


class LearningCurveSetup(NamedTuple):
    """What the runs of learning curves share.

    Attributes:
        context: data, encoder, cache; all its training rows are the largest size.
        settings: head and options; strategies and seeds are the analysis's.
        folder: where records are kept, under `sizes/N`. Finished runs of a study in it count as
            done.
    """

    context: "Context"
    settings: "Settings"
    folder: Path

    def candidates(
        self, strategies: Sequence[str] | None, seeds: int | tuple[int, ...]
    ) -> "tuple[list[Candidate], list[int]]":
        """The candidates, a baseline of the task among them unless others are named, and seeds."""
        baseline = WORD_BASELINE if self.context.task.per_word else TEXT_BASELINE
        names = strategies or (baseline, *DEFAULTS)
        chosen = replace(self.settings, strategies=names, seeds=seeds)
        columns = self.context.dataset.columns
        return chosen.candidates(columns.task, pairs=columns.pair is not None), chosen.seed_list

    @property
    def smallest_size(self) -> int:
        """Training rows that are needed: one per class; two for scores and tags."""
        task = self.context.task
        return task.outputs if task.name == "classification" else 2

    def untuned(self, candidates: "Sequence[Candidate]", seed: int) -> list[str]:
        """Labels of the candidates that train nothing inside the encoder, after a check of plans.

        Raises:
            ConfigError: if a candidate does not fit encoder and task.
        """
        from totune.runs.run import configure
        from totune.runs.runner import check_plans, tokenize_splits

        runs = configure(candidates, [seed], self.context)
        check_plans(runs, self.context)
        tokenize_splits(runs, self.context)
        return [run.label for run in runs if not _tunes(run, self.context)]


class SizedRun(NamedTuple):
    """A run on part of the training set.

    Attributes:
        size: training rows that were asked for.
        rows: training rows that were drawn; where documents stay whole not quite as many.
        record: the run's record.
        arrays: its test predictions; None if it failed.
    """

    size: int
    rows: int
    record: RunRecord
    arrays: Mapping[str, NDArray[Any]] | None


def open_learning_curves(
    data: str | Path,
    folder: Path,
    progress: Progress,
    *,
    strategies: Sequence[str] | None,
    seeds: int | tuple[int, ...],
    **settings: Any,
) -> LearningCurveSetup:
    """Reads data and encoder, after all faults of the settings are reported.

    Args:
        data: as for `totune.compare`.
        folder: where records are kept.
        progress: receives notes and warnings.
        strategies: those that are compared; None for a baseline, feature extraction, fine-tuning.
        seeds: how many, or which.
        **settings: see `totune.runs.settings.Settings`.

    Raises:
        TotuneError: as `totune.compare`.
    """
    from totune.runs.prepare import prepare
    from totune.runs.settings import Settings

    # Which of the baselines it will be depends on the data, which is not read yet.
    names = strategies or (TEXT_BASELINE, WORD_BASELINE, *DEFAULTS)
    asked = {**settings, "strategies": names, "seeds": seeds}
    chosen = build(Settings, asked, "label-cost")
    chosen.candidates()
    return LearningCurveSetup(prepare(data, chosen, progress), chosen, folder)


def subset(context: "Context", size: int, seed: int) -> "Context":
    """The same context with `size` training rows, drawn by `seed`.

    Sets of one seed are nested: `shrink` takes the first rows of one stratified order.

    Args:
        context: with all training rows.
        size: number of rows; whole documents are drawn where they are known, so that it is met
            nearly.
        seed: seed of the order.
    """
    data = context.dataset
    if size == len(data.train):
        return context
    share = size / len(data.train)
    parts = shrink(data.splits(), data.columns.task, share, seed)
    return context.with_splits({"train": parts["train"]})


def run_size(
    size: int, seed: int, candidates: "Sequence[Candidate]", setup: LearningCurveSetup
) -> Iterator[SizedRun]:
    """The runs of one size and seed; trained weights are of no further use and not kept."""
    from totune.runs.run import configure
    from totune.runs.store import Store

    context = subset(setup.context, size, seed)
    runs = configure(candidates, [seed], context)
    stores = (Store(setup.folder), Store(setup.folder / SIZES / str(size)))
    missing = [each for each in runs if _finished(each.fingerprint, stores) is None]
    if missing:
        context.progress.say(f"{size:,} training rows, seed {seed}")
    _execute(missing, context, stores[1])
    for run in runs:
        store = _finished(run.fingerprint, stores) or stores[1]
        record = store.record(run.fingerprint)
        assert record is not None, "it has just run"
        arrays = store.predictions(record) if record.status == "finished" else None
        yield SizedRun(size, len(context.dataset.train), record, arrays)


def _tunes(run: "Run", context: "Context") -> bool:
    """Whether a run trains something inside the encoder."""
    from totune.strategies.base import Strategy
    from totune.strategies.coverage import trained_names

    if not isinstance(run.method, Strategy):
        return False
    model, plan = run.spec(context).check()
    own = ("mixing.", "head.")  # the rest of a model is its encoder
    return any(not name.startswith(own) for name in trained_names(model, plan))


def _execute(runs: "Runs", context: "Context", store: "Store") -> None:
    from totune.runs.runner import Runner

    runner = Runner(context, store)
    runner.drop_weights(runner.execute(runs))
    context.devices.wait()  # all read what the main process wrote


def _finished(fingerprint: str, stores: "Sequence[Store]") -> "Store | None":
    """The store that has a finished record of a run."""
    for store in stores:
        record = store.record(fingerprint)
        if record is not None and record.status == "finished":
            return store
    return None
