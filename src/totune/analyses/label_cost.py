"""Cost of labels: what each strategy scores with few training rows, with more, with all."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.drawing.label_section import label_section
from totune.analyses.findings import SIZES
from totune.analyses.measuring import label_gains
from totune.analyses.measuring.known import finite
from totune.data.splits import Splits, shrink
from totune.errors import ConfigError, DataError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.registry import build
from totune.report.document import Section
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.execute import Runs, check_plans, execute, tokenize_splits
from totune.runs.prepare import configurations, prepare
from totune.runs.records import RunRecord
from totune.runs.run import build_model
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.strategies.base import Count, Strategy
from totune.strategies.coverage import trained_names

DEFAULTS = ("feature-extraction", "fine-tuning")
WORDS = ("tf-idf", "most-frequent-tag")  # the baseline of texts, and of tagged words


@dataclass(frozen=True)
class Bench:
    """What the runs of learning curves share.

    Attributes:
        context: data, encoder, cache; all its training rows are the largest size.
        settings: head and options; which strategies and seeds, the analysis says.
        folder: where records are kept, under `sizes/N`. Finished runs of a study in it count as
            done.
    """

    context: Context
    settings: Settings
    folder: Path


@dataclass(frozen=True)
class Measured:
    """A run with so many training rows, and its test predictions; None where it failed."""

    size: int
    rows: int
    record: RunRecord
    arrays: Mapping[str, NDArray[Any]] | None


@ANALYSES.register("label-cost")
@dataclass(frozen=True)
class LabelCost(Analysis[Bench]):
    """Learning curves over sizes of the training set: where does tuning begin to pay?

    Wang et al. 2019 and Hart both end on this question. Each seed draws its own rows, stratified,
    the smaller set within the larger, so that intervals cover which rows were labelled. The label
    space is that of all training rows; dev and test stay whole. Strategies keep their default
    epochs, so few rows are few steps too.

    Attributes:
        sizes: training rows, or `all`; those that the data does not have are left out.
        strategies: those that are compared, baselines too; none for tf-idf (for tagging:
            most-frequent-tag), feature-extraction and fine-tuning.
        seeds: how many, or which.
    """

    title: ClassVar[str] = "Cost of labels"

    sizes: Annotated[tuple[Count | Literal["all"], ...], Field(min_length=1)] = (
        *(100, 300, 1000, 3000),
        "all",
    )
    strategies: tuple[str, ...] | None = None
    seeds: Count | tuple[int, ...] = 3

    def run(self, material: Bench, progress: Progress) -> Values:
        """Runs what has no finished record yet.

        Raises:
            ConfigError: if no size fits the data, or a strategy does not fit encoder and task.
            DataError: if every run failed.
        """
        context = material.context
        sizes = self._fitting(context, progress)
        members, seeds = self._members(context, material.settings)
        runs = configurations(members, seeds[:1], context)
        check_plans(runs, context)
        tokenize_splits(runs, context)
        untuned = [config.label for config, made in runs if not _tunes(config, made, context)]
        found = [
            measured
            for size in sizes
            for seed in seeds
            for measured in _measure(size, seed, members, material)
        ]
        if all(measured.arrays is None for measured in found):
            raise DataError(f"No run finished. The first one's message: {found[0].record.error}")
        return _values(found, untuned, context)

    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        return label_section(self.title, values.rows, values.facts)

    def _fitting(self, context: Context, progress: Progress) -> list[int]:
        """The sizes that the data has, ascending."""
        most, least = len(context.dataset.train), _least(context)
        asked = {most if size == "all" else size for size in self.sizes}
        kept = sorted(size for size in asked if least <= size <= most)
        if not kept:
            raise ConfigError(
                f"None of the sizes {', '.join(map(str, self.sizes))} fits: there are {most:,} "
                f"training rows, and at least {least} are needed. Name others with `sizes`."
            )
        for size in sorted(asked - set(kept)):
            progress.say(
                f"Size {size:,} is left out: sizes from {least} to {most:,} fit this data."
            )
        return kept

    def _members(self, context: Context, settings: Settings) -> tuple[list[Candidate], list[int]]:
        names = self.strategies or (WORDS[context.task.per_word], *DEFAULTS)
        chosen = replace(settings, strategies=names, seeds=self.seeds)
        columns = context.dataset.columns
        return chosen.check(columns.task, pairs=columns.pair is not None), chosen.seed_list


def open_bench(
    data: str | Path, analysis: LabelCost, folder: Path, progress: Progress, **settings: Any
) -> Bench:
    """Reads data and encoder, after every fault of the settings was looked for.

    Args:
        data: as for `totune.compare`.
        analysis: says which strategies and seeds.
        folder: where records are kept.
        progress: told of everything that goes on.
        **settings: see `totune.runs.settings.Settings`.

    Raises:
        TotuneError: as `totune.compare`.
    """
    names = analysis.strategies or (*WORDS, *DEFAULTS)  # the data tells which baseline it will be
    asked = {**settings, "strategies": names, "seeds": analysis.seeds}
    chosen = build(Settings, asked, "label-cost")
    chosen.check()
    return Bench(prepare(data, chosen, progress), chosen, folder)


def subset(context: Context, size: int, seed: int) -> Context:
    """The same with `size` training rows, drawn by `seed`.

    Sets of one seed are nested: `shrink` takes the first rows of one stratified order.

    Args:
        context: with all training rows.
        size: how many; whole documents are drawn where they are known, so that it is met nearly.
        seed: fixes the order.
    """
    data = context.dataset
    if size == len(data.train):
        return context
    share = size / len(data.train)
    parts = shrink(Splits(data.splits(), ()), data.columns.task, share, seed).parts
    return context.with_splits({"train": parts["train"]})


def _least(context: Context) -> int:
    """A row per class; two for scores and tags."""
    return context.task.outputs if context.task.name == "classification" else 2


def _tunes(config: Any, made: Any, context: Context) -> bool:
    """Whether a member trains something inside the encoder."""
    if not isinstance(made, Strategy):
        return False
    model, plan = build_model(config, made, context)
    own = ("mixing.", "head.")  # the rest of a model is its encoder
    return any(not name.startswith(own) for name in trained_names(model, plan))


def _measure(
    size: int, seed: int, members: Sequence[Candidate], bench: Bench
) -> Iterator[Measured]:
    """The runs of one size and seed; trained weights are of no further use and not kept."""
    context = subset(bench.context, size, seed)
    runs = configurations(members, [seed], context)
    stores = (Store(bench.folder), Store(bench.folder / SIZES / str(size)))
    missing = [each for each in runs if _finished(each[0].fingerprint, stores) is None]
    if missing:
        bench.context.progress.say(f"{size:,} training rows, seed {seed}")
    _execute(missing, context, stores[1])
    for config, _ in runs:
        store = _finished(config.fingerprint, stores) or stores[1]
        record = store.record(config.fingerprint)
        assert record is not None, "it has just run"
        arrays = store.predictions(record) if record.status == "finished" else None
        yield Measured(size, len(context.dataset.train), record, arrays)


def _execute(runs: Runs, context: Context, store: Store) -> None:
    for record in execute(runs, context, store):
        if context.devices.is_main:
            shutil.rmtree(store.weights(record.fingerprint), ignore_errors=True)
    context.devices.wait()  # all read what the main process wrote


def _finished(fingerprint: str, stores: Sequence[Store]) -> Store | None:
    """The store that has a finished record of a run."""
    for store in stores:
        record = store.record(fingerprint)
        if record is not None and record.status == "finished":
            return store
    return None


def _values(found: Sequence[Measured], untuned: Sequence[str], context: Context) -> Values:
    metric = METRICS[context.settings.metric]
    rows = [_row(measured, metric.name, untuned, context) for measured in found]
    labels = list(dict.fromkeys(measured.record.strategy for measured in found))
    runs: label_gains.Runs = {}
    for measured, row in zip(found, rows, strict=True):
        if measured.arrays is not None and row["test"] is not None:
            runs.setdefault((measured.size, measured.record.strategy), []).append(
                (row["dev"], measured.arrays)
            )
    gains = label_gains.gains(runs, labels, untuned, metric)
    facts = {
        "metric": metric.name,
        "sizes": sorted({measured.size for measured in found}),
        "strategies": labels,
        "untuned": list(untuned),
        "seeds": len({measured.record.seed for measured in found}),
        "train_rows": len(context.dataset.train),
        "test_rows": len(context.dataset.test),
        "gains": gains,
        "begins": label_gains.begins(gains),
    }
    return Values(rows, facts)


def _row(
    measured: Measured, metric: str, untuned: Sequence[str], context: Context
) -> dict[str, Any]:
    record, costs = measured.record, measured.record.costs
    rows_per_step = record.config.get("settings", {}).get("train_batch_size", 1)
    steps = len(record.epochs) * -(-measured.rows // rows_per_step) if record.epochs else None
    return {
        "strategy": record.strategy,
        "tuned": record.strategy not in untuned,
        "size": measured.size,
        "rows": measured.rows,
        "seed": record.seed,
        "dev": finite(record.dev.get(metric)),
        "test": finite(record.test.get(metric)),
        "seconds": None if costs is None else costs.train_seconds + costs.feature_seconds,
        "steps": None if context.settings.tokens_per_batch else steps,
        "trouble": record.error or record.degenerate,
    }
