"""How long and at which rate each strategy should train: the sweep behind `strategies/defaults.py`.

    python -m benchmarks.defaults sweep      # measures what is missing; can be stopped at any time
    python -m benchmarks.defaults studies minilm:sst2:100    # default studies, to be judged
    python -m benchmarks.defaults regret     # the table of docs/defaults.md

A cell is an encoder, a data set and a number of training rows (stratified, seed 0), with a dev
split of a size that such data has and 300 test rows. A point of the grid is a strategy, its
epochs, its rate, its batch size and a seed. Every run is scored on test twice: in the state of its
best epoch by dev and in the state of its last epoch. A line of JSON per run is appended to
`benchmarks/results/defaults.jsonl`; what stands there is not run again.

Needs the folder of data sets beside the checkout (or `TOTUNE_SHARED`).
"""

import argparse
import gzip
import json
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

import totune
from benchmarks.common import RESULTS, SHARED
from totune.data.examples import Dataset, Examples
from totune.data.sources import load_dataset
from totune.data.splits import strata
from totune.progress import Progress
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.prepare import prepare
from totune.runs.run import configure
from totune.runs.settings import Settings
from totune.strategies.defaults import batch_size
from totune.study.study import Study
from totune.tasks.base import TASKS
from totune.training.history import EpochRecord
from totune.training.inputs import open_source, predict
from totune.training.trainer import Trainer

FOUND = RESULTS / "defaults.jsonl"
DEV_ROWS = {100: 25, 300: 50, 600: 100, 3000: 300}
TEST_ROWS = 300


@dataclass(frozen=True)
class EncoderSource:
    """Where a data set's rows come from: a file of the shared folder and its columns."""

    file: str
    text: str
    label: str
    pair: str | None = None
    task: str | None = None


SOURCES = {
    "sst2": EncoderSource("sst2/train.tsv.gz", "sentence", "label"),
    "airline": EncoderSource("cf_airline/train.csv.gz", "text", "airline_sentiment"),
    "news": EncoderSource("news_aggregator/train.txt.gz", "text", "label"),
    "emotions": EncoderSource("cf_primary_emotions/train.csv.gz", "sentence", "emotion"),
    "cola": EncoderSource("cola/train.tsv.gz", "text", "label"),
    "mrpc": EncoderSource("mrpc/train.tsv.gz", "#1 String", "Quality", "#2 String"),
    "sick-r": EncoderSource("sick/train.txt.gz", "sentence_A", "relatedness_score", "sentence_B"),
    "conll": EncoderSource("conll2003/train.txt.gz", "", ""),
    "disasters": EncoderSource("disaster_tweets/train.csv.gz", "text", "target"),
    "qqp": EncoderSource("qqp/train.tsv.gz", "question1", "is_duplicate", "question2"),
}
HELD_OUT = ("disasters", "qqp")  # the rule was not fitted on them


@dataclass(frozen=True)
class Cell:
    """An encoder, a data set, and how many rows of it train."""

    encoder: str
    data: str
    rows: int


@dataclass(frozen=True)
class Point:
    """A run of a cell; a rate or a number of epochs of None is the strategy's default."""

    strategy: str
    epochs: int | None = None
    rate: float | None = None
    batch: int | None = None
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()

    def member(self) -> Candidate:
        options: dict[str, Any] = dict(self.options)
        if self.epochs is not None:
            options["num_train_epochs"] = self.epochs
        if self.rate is not None:
            options["learning_rate"] = self.rate
        return Candidate(self.strategy, options)


Key = tuple[Cell, Point]


def subset(cell: Cell) -> Dataset:
    """The rows of a cell, in three splits; equal for all encoders."""
    whole = load_source(SOURCES[cell.data], cell.data)
    rng = np.random.default_rng([cell.rows, 20190311])
    train, task = whole.train, whole.columns.task
    if task == "tagging":  # a sentence of a document stands for itself here
        train = replace(train, documents=None)
    order = _stratified(train, task, rng)
    ends = np.cumsum([cell.rows, DEV_ROWS[cell.rows], TEST_ROWS])
    parts = [train.take(rows) for rows in np.split(order[: ends[-1]], ends[:-1])]
    return replace(whole, train=parts[0], dev=parts[1], test=parts[2])


def _stratified(rows: Examples, task: Any, rng: np.random.Generator) -> np.ndarray:
    """All row numbers in an order whose every stretch holds the strata in proportion."""
    kind = strata(rows.labels or (), task)
    place = np.empty(len(kind))
    for stratum in np.unique(kind):
        members = np.flatnonzero(kind == stratum)
        place[members] = (rng.permutation(len(members)) + rng.random()) / len(members)
    return np.argsort(place, kind="stable")


def load_source(source: EncoderSource, name: str) -> Dataset:
    """A data set of the shared folder, whole."""
    path = SHARED / "data" / source.file
    columns = {"text": source.text or None, "label": source.label or None, "pair": source.pair}
    with tempfile.TemporaryDirectory() as folder:
        text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
        suffix = Path(source.file.removesuffix(".gz")).suffix
        if name == "news":
            text = "label\ttext\n" + text
        if name == "cola":
            text = "source\tlabel\tmark\ttext\n" + text
        suffix = ".conll" if name == "conll" else {".txt": ".tsv"}.get(suffix, suffix)
        plain = Path(folder) / f"{name}{suffix}"
        plain.write_text(text, encoding="utf-8")
        return load_dataset(plain, **columns)  # type: ignore[arg-type]


def open_cell(cell: Cell, cache: Path) -> Context:
    """What the runs of a cell share."""
    return open_rows(subset(cell), cell.encoder, cache, "matthews" if cell.data == "cola" else "")


def open_rows(rows: Dataset, encoder: str, cache: Path, metric: str = "") -> Context:
    """What the runs on `rows` share; without a `metric`, the task's own decides."""
    model = _encoder(encoder)
    with tempfile.TemporaryDirectory() as folder:  # a data set of any kind opens the context
        stand_in = Path(folder) / "rows.csv"
        stand_in.write_text("text,label\n" + "".join(f"a {i},{i % 2}\n" for i in range(20)))
        settings = Settings(model=model, cache_dir=cache, max_length=128)
        context = prepare(stand_in, settings, Progress())
    task = TASKS.get(rows.columns.task).from_examples(rows.train)
    shared = replace(context.settings, metric=metric or task.metrics[0])
    return replace(context, dataset=rows, task=task, settings=shared, _splits={})


def _encoder(name: str) -> str:
    """Where an encoder is; mpnet-base in the folder that TOTUNE_MPNET names."""
    return {
        "minilm": "minilm",
        "gte-small": str(SHARED / "models" / "gte-small"),
        "flair": str(SHARED / "models" / "flair-news-fast"),
        "mpnet-base": os.environ.get("TOTUNE_MPNET", "mpnet-base"),
    }[name]


def measure(point: Point, context: Context) -> dict[str, Any]:
    """Trains a point and scores it on test, in its best and in its last state."""
    batch = point.batch or batch_size(len(context.dataset.train))
    context = replace(context, settings=replace(context.settings, train_batch_size=batch))
    [run] = configure([point.member()], [point.seed], context)
    spec = run.spec(context)
    began = time.perf_counter()
    model, plan = spec.build(run.config.seeds["init"])
    encoding_options = spec.encoding_options
    train, dev, test = (context.split(name, encoding_options) for name in ("train", "dev", "test"))
    metric, last = context.settings.metric, {}

    def score() -> tuple[float, str | None]:
        source = open_source(test, model, context.cache, model.freeze_prefix())
        outputs = predict(model, source, context.devices).values
        predictions = context.task.predictions(outputs, context.dataset.test.counts)
        assert test.targets is not None
        value = context.task.evaluate(test.targets, predictions)[metric]
        return 100 * value, context.task.degenerate(test.targets, predictions)

    total = sum(phase.stop.num_train_epochs for phase in plan)

    def on_epoch(epoch: EpochRecord) -> None:
        if epoch.epoch == total:
            last["test"], last["degenerate"] = score()

    trainer = Trainer(
        model, train, dev, context.settings, run.config.seeds["order"],
        cache=context.cache, devices=context.devices,
    )  # fmt: skip
    history = trainer.fit(plan, on_epoch=on_epoch)
    ended_best = history.best == len(history.epochs) - 1 and "test" in last
    test_best, degenerate = (last["test"], last["degenerate"]) if ended_best else score()
    context.cache.release()
    curve = [round(100 * epoch.dev[metric], 2) for epoch in history.epochs]
    return {
        "metric": metric,
        "run_epochs": len(history.epochs),
        "best_epoch": history.best + 1,
        "test_best": round(test_best, 2),
        "test_last": round(last.get("test", test_best), 2),
        "degenerate": last.get("degenerate", degenerate) is not None,
        "degenerate_best": degenerate is not None,
        "train_loss": round(history.epochs[-1].train["loss"], 4),
        "dev_loss": [round(epoch.dev["loss"], 3) for epoch in history.epochs],
        "dev": curve,
        "seconds": round(time.perf_counter() - began, 1),
    }


SETS = ("sst2", "news", "airline", "cola", "emotions", "sick-r", "conll", "mrpc")
INFORMATIVE = ("sst2", "news", "sick-r", "conll")  # where 100 rows teach something


def _points(strategy: str, batch: int, *runs: tuple[int, float]) -> list[Point]:
    return [Point(strategy, epochs, rate, batch) for epochs, rate in runs]


def _best(cell: Cell, strategy: str) -> tuple[int, float]:
    """Epochs and rate of the grid's best point of the first seed."""
    first = [
        (row["test_last"], row["point"]["epochs"], row["point"]["rate"])
        for row in done().values()
        if Cell(**row["cell"]) == cell and "error" not in row
        and row["point"]["strategy"] == strategy and row["point"]["seed"] == 0
    ]  # fmt: skip
    _, epochs, rate = max(first)
    return epochs, rate


def _again(strategy: str, epochs: int, rate: float) -> list[Point]:
    return [Point(strategy, epochs, rate, 16, seed) for seed in (1, 2)]


STEPPED = (("layers", "scalar-mix"), ("patience", 8), ("solver", "gradient"))  # the former default
FROZEN = [Point("feature-extraction", options=STEPPED)]


def stages() -> Iterator[tuple[Cell, list[Point]]]:
    """What is measured, the most telling first; at 100 rows an epoch has 7 steps, at 600 38."""
    for data in SETS:
        cell = Cell("minilm", data, 100)
        tuned = _points("fine-tuning", 16, (20, 1e-4), (20, 2e-4), (20, 5e-5), (10, 2e-4))
        yield cell, FROZEN + tuned
        yield cell, _points("last-2", 16, (20, 2e-4), (20, 5e-4), (20, 1e-3), (40, 5e-4))
    for data in INFORMATIVE:
        cell = Cell("minilm", data, 100)
        yield cell, _points("lora", 16, (20, 2e-3), (20, 5e-3), (40, 2e-3))
        yield cell, _points("adapters", 16, (20, 1e-3), (20, 3e-3), (40, 1e-3))
    yield from _more_seeds()
    for data in INFORMATIVE:
        cell = Cell("minilm", data, 600)
        yield cell, FROZEN + _points("fine-tuning", 16, (10, 1e-4), (10, 5e-5), (5, 1e-4))
        yield cell, _points("last-2", 16, (10, 2e-4), (10, 5e-4), (20, 2e-4))
        yield cell, _points("lora", 16, (10, 2e-3), (20, 2e-3))
        yield cell, _points("adapters", 16, (10, 1e-3), (20, 1e-3))
    cell = Cell("minilm", HELD_OUT[0], 100)
    yield cell, _points("fine-tuning", 16, (20, 5e-5), (20, 2e-4))
    yield cell, _points("last-2", 16, (20, 5e-4), (40, 5e-4)) + _points("lora", 16, (20, 5e-3))
    for data in ("airline", "cola", "emotions", "mrpc"):
        cell = Cell("minilm", data, 600)
        yield cell, FROZEN + _points("fine-tuning", 16, (10, 1e-4), (10, 5e-5))
        yield cell, _points("last-2", 16, (10, 2e-4)) + _points("adapters", 16, (20, 1e-3))
    yield from _other_encoders()


def _more_seeds() -> Iterator[tuple[Cell, list[Point]]]:
    """The best point of the grid and what the rule gives, with two seeds more."""
    for data in SETS:
        cell = Cell("minilm", data, 100)
        for strategy, rate in (("last-2", 2e-4), ("fine-tuning", 1e-4)):
            again = {(20, rate), _best(cell, strategy)}
            yield cell, [Point(strategy, *each, 16, seed) for each in again for seed in (1, 2)]


def _best(cell: Cell, strategy: str) -> tuple[int, float]:
    """Epochs and rate of the grid's best point, by its first seed."""
    points = [
        (row["test_last"], row["point"]["epochs"], row["point"]["rate"])
        for row in done().values()
        if (row["cell"], row["point"]["strategy"]) == (asdict(cell), strategy)
        and row["point"]["seed"] == 0
    ]
    _, epochs, rate = max(points)
    return epochs, rate


def _other_encoders() -> Iterator[tuple[Cell, list[Point]]]:
    for encoder in ("mpnet-base", "gte-small"):
        for data in ("news", "sst2"):
            cell = Cell(encoder, data, 100)
            yield cell, _points("last-2", 16, (10, 1e-4), (10, 2e-4), (10, 5e-4))
            yield cell, _points("fine-tuning", 16, (10, 1e-4), (10, 5e-5), (10, 2e-5))
    for data in ("sst2", "news"):
        cell = Cell("flair", data, 100)
        yield cell, FROZEN + _points("fine-tuning", 16, (20, 1e-4), (20, 1e-3))
        cell = Cell("gte-small", data, 600)
        yield cell, _points("fine-tuning", 16, (10, 1e-4), (10, 5e-5))
        yield cell, _points("last-2", 16, (10, 2e-4)) + _points("lora", 16, (20, 2e-3))
    for encoder in ("gte-small", "mpnet-base"):
        cell = Cell(encoder, "sst2", 3000)
        yield cell, _points("fine-tuning", 32, (3, 1e-4), (3, 5e-5))
        yield cell, _points("last-2", 32, (3, 2e-4))


def done() -> dict[str, dict[str, Any]]:
    """Every run that was measured, by cell and point."""
    if not FOUND.exists():
        return {}
    rows = [json.loads(line) for line in FOUND.read_text(encoding="utf-8").splitlines()]
    return {identify(row["cell"], row["point"]): row for row in rows}


def identify(cell: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    """The name of a run."""
    return json.dumps([dict(cell), dict(point)], sort_keys=True)


def _chunk(job: tuple[Cell, list[Point], str]) -> list[dict[str, Any]]:
    cell, points, cache = job
    torch.set_num_threads(1)
    context = open_cell(cell, Path(cache))
    found = []
    for point in points:
        row = {"cell": asdict(cell), "point": _plain(point)}
        try:
            found.append(row | measure(point, context))
        except Exception as error:
            found.append(row | {"error": f"{type(error).__name__}: {error}"})
        _append(found[-1])
    return found


def _plain(point: Point) -> dict[str, Any]:
    return {**asdict(point), "options": dict(point.options)}


def _append(row: Mapping[str, Any]) -> None:
    with FOUND.open("a", encoding="utf-8") as file:  # a line of under 4 kB is written in one piece
        file.write(json.dumps(row) + "\n")


def sweep(jobs: int, cache: Path, stages: Callable[[], Iterator[tuple[Cell, list[Point]]]]) -> None:
    """Measures what is missing."""
    known = done()
    todo = []
    for cell, points in stages():
        missing = [p for p in points if identify(asdict(cell), _plain(p)) not in known]
        if missing:
            todo.append((cell, missing, str(cache)))
    print(f"{sum(len(points) for _, points, _ in todo)} runs to measure", flush=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for rows in pool.imap_unordered(_chunk, todo):
            for row in rows:
                print(
                    *row["cell"].values(), *row["point"].values(), row.get("test_last"),
                    row.get("test_best"), row.get("seconds"), row.get("error", ""), flush=True,
                )  # fmt: skip


COMPARED = ("feature-extraction", "last-2", "fine-tuning", "adapters", "lora")


def studies(cells: Sequence[Cell], folder: Path, seeds: int, cache: Path) -> None:
    """Runs `totune compare` with its defaults on every cell, as a user would."""
    for cell in cells:
        place = folder / f"{cell.encoder}-{cell.data}-{cell.rows}"
        rows = subset(cell)
        data = place / "data"
        data.mkdir(parents=True, exist_ok=True)
        for name, part in rows.splits().items():
            lines = [json.dumps(row) for row in _rows(part)]
            (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        kind = rows.columns.task
        own = ["tf-idf", "sentence-embedding"] if part.pairs is not None else ["tf-idf"]
        compared = (*(["most-frequent-tag"] if kind == "tagging" else own), *COMPARED)
        settings: dict[str, Any] = {"metric": "matthews"} if cell.data == "cola" else {}
        totune.compare(
            data, out=place / "study", model=_encoder(cell.encoder), strategies=compared,
            seeds=seeds, task=kind, max_length=128, cache_dir=cache, **settings,
        )  # fmt: skip
        print(place.name, "done", flush=True)


def _rows(part: Examples) -> Iterator[dict[str, Any]]:
    for number, label in enumerate(part.labels or ()):
        if part.words is not None:
            yield {"tokens": list(part.words[number]), "tags": label}
        elif part.pairs is not None:
            yield {"text": part.texts[number], "pair": part.pairs[number], "label": label}
        else:
            yield {"text": part.texts[number], "label": label}


@dataclass(frozen=True)
class Regret:
    """How far defaults stay behind the best of the grid on one cell, in points.

    Attributes:
        best: the best test score of any point of the grid, mean over its seeds, and its point.
        recommended: what the default study recommends, or would use for now, and its mean score.
        own: by strategy: its best point's mean score, and that of its default.
    """

    cell: Cell
    best: tuple[float, str]
    recommended: tuple[float, str]
    own: dict[str, tuple[float, float]]


def regrets(folder: Path) -> list[Regret]:
    """Of every cell that has a default study; a default can be better than the whole grid."""
    found = []
    for cell, grid in _grid().items():
        place = folder / f"{cell.encoder}-{cell.data}-{cell.rows}" / "study"
        if not (place / "study.json").is_file():
            continue
        study = Study(place)
        means = {s.strategy: 100 * s.score.mean for s in study.advice.standings}
        bests = {**grid}
        for strategy, mean in means.items():  # a default is a setting, too
            bests[strategy] = max(bests.get(strategy, (mean, "")), (mean, "its default"))
        name = max(bests, key=lambda each: bests[each][0])
        provisional = study.advice.provisional or ""
        found.append(
            Regret(
                cell,
                (bests[name][0], f"{name} {bests[name][1]}"),
                (means.get(provisional, math.nan), provisional),
                {each: (bests[each][0], means[each]) for each in COMPARED if _swept(grid, each)},
            )
        )
    return found


def _swept(grid: Mapping[str, tuple[float, str]], strategy: str) -> bool:
    """Whether the sweep has tried other settings of a strategy than its default."""
    return bool(grid.get(strategy, (0.0, ""))[1])


def _grid() -> dict[Cell, dict[str, tuple[float, str]]]:
    """By cell and strategy, the best mean score over seeds in the last state, and its point."""
    scores: dict[tuple[Cell, str, str], list[float]] = {}
    for row in done().values():
        if "error" not in row:
            point = row["point"]
            text = f"{point['epochs']} epochs, {point['rate']}, batch {point['batch']}"
            key = (Cell(**row["cell"]), point["strategy"], text if point["epochs"] else "")
            scores.setdefault(key, []).append(row["test_last"])
    best: dict[Cell, dict[str, tuple[float, str]]] = {}
    for (cell, strategy, text), values in scores.items():
        own = best.setdefault(cell, {})
        own[strategy] = max(own.get(strategy, (-math.inf, "")), (fmean(values), text))
    return best


def table(rows: Sequence[Regret]) -> str:
    """The regrets as Markdown."""
    names = [name for name in COMPARED if any(name in row.own for row in rows)]
    lines = [
        f"| Encoder | Data | Rows | Best of all | Recommended | Regret | {' | '.join(names)} |",
        "|---|---|---:|---|---|---:|" + "---:|" * len(names),
    ]
    for row in rows:
        cell, own = row.cell, row.own
        behind = [f"{own[n][0] - own[n][1]:.1f}" if n in own else "-" for n in names]
        lines.append(
            f"| {cell.encoder} | {cell.data} | {cell.rows} | {row.best[0]:.1f} {row.best[1]} | "
            f"{row.recommended[0]:.1f} {row.recommended[1]} | "
            f"{row.best[0] - row.recommended[0]:.1f} | {' | '.join(behind)} |"
        )
    regret = [row.best[0] - row.recommended[0] for row in rows]
    means = [fmean(r.own[n][0] - r.own[n][1] for r in rows if n in r.own) for n in names]
    shown = " | ".join(f"{mean:.1f}" for mean in means)
    lines.append(f"| mean | | | | | {fmean(regret):.1f} (worst {max(regret):.1f}) | {shown} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The sweep, the default studies, or the tables drawn from both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("what", choices=("sweep", "studies", "regret"))
    parser.add_argument("cells", nargs="*", help="of studies: ENCODER:DATA:ROWS")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the sweep")
    parser.add_argument("--seeds", type=int, default=3, help="of studies")
    scratch = Path(tempfile.gettempdir()) / "totune-defaults"
    parser.add_argument("--studies", type=Path, default=scratch / "studies")
    parser.add_argument("--cache", type=Path, default=scratch / "cache")
    given = parser.parse_args(arguments)
    if given.what == "sweep":
        return sweep(given.jobs, given.cache, stages)
    if given.what == "studies":
        named = [name.split(":") for name in given.cells]
        cells = [Cell(encoder, data, int(rows)) for encoder, data, rows in named]
        return studies(cells, given.studies, given.seeds, given.cache)
    return print(table(regrets(given.studies)))


if __name__ == "__main__":
    main()
