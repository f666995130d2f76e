"""What a study costs, as a model fitted to measured runs: rows, depth, seeds, strategies, devices.

Every default strategy is trained for a few epochs on encoders of random weights, MiniLM's width and
2, 6 and 12 layers, on rows of 32 word pieces; speed does not depend on what weights and words mean.
From each epoch's seconds three prices are fitted (non-negative least squares, relative errors): of
an operation forward, of an operation backward, and of a row, which stands for all that does not
grow with the encoder. Larger runs of another depth, which the fit has not seen, check it.
"""

import argparse
import csv
import heapq
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from transformers import AutoTokenizer, BertConfig, BertModel

import totune
from benchmarks.common import save
from totune import machine
from totune.encoders.sources import resolve
from totune.runs.records import EpochRecord, RunRecord
from totune.runs.settings import DEFAULT_STRATEGIES

WIDTH, HEADS, PIECES = 384, 12, 32
WORDS = "the man saw a good film and we had time for it in our house near the old town".split()
INSERTED = ("adapters", "lora")  # gradients pass through the encoder's weights, which get none
FIT = tuple(itertools.product((2, 12), (160, 480)))  # layers, train rows
CHECK = (6, 960)
EPOCHS = {"num_train_epochs": 2}
FULL_EPOCHS = {"feature-extraction": 20, "last-2": 3, "fine-tuning": 3, "adapters": 10, "lora": 10}
STACK_EPOCHS = 4  # of phase 1; the gap rule of the studies in docs/results.md ended it after 1 to 4
DEV_SHARE = 0.1


@dataclass(frozen=True)
class Work:
    """What is computed: operations forward and backward, and rows that are read."""

    forward: float = 0.0
    backward: float = 0.0
    rows: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.forward + other.forward, self.backward + other.backward, self.rows + other.rows
        )

    def times(self, factor: float) -> "Work":
        return Work(self.forward * factor, self.backward * factor, self.rows * factor)

    @property
    def vector(self) -> list[float]:
        return [self.forward, self.backward, self.rows]


@dataclass(frozen=True)
class Shape:
    """An encoder and how long rows are."""

    layers: int
    width: int
    pieces: int

    @property
    def operations(self) -> float:
        """Floating-point ones of one layer forward, per row: projections, and attention itself."""
        return self.pieces * (24 * self.width**2 + 4 * self.pieces * self.width)


def epoch(
    shape: Shape, train: int, dev: int, frozen: int, inserted: bool, again: bool = False
) -> Work:
    """One epoch over cached features of what is frozen, and the dev split scored.

    Args:
        shape: of the encoder.
        train: rows.
        dev: rows.
        frozen: the deepest frozen block.
        inserted: whether only what was inserted trains, so that weights get no gradients.
        again: whether the train rows are scored after it, too.
    """
    layer = (shape.layers - max(frozen, 0)) * shape.operations
    scored = dev + (train if again else 0)
    backward = layer * train * (1 if inserted else 2)
    return Work(layer * (train + scored), backward, train + scored)


def measured(records: Sequence[RunRecord], shape: Shape, train: int, dev: int) -> Iterator[Any]:
    """(work, seconds, strategy) of every epoch but a run's first, which warms up."""
    for record in records:
        inserted = record.strategy in INSERTED
        for each in record.epochs[1:]:
            yield _work_of(each, shape, train, dev, inserted), each.seconds, record.strategy


def _work_of(each: EpochRecord, shape: Shape, train: int, dev: int, inserted: bool) -> Work:
    return epoch(shape, train, dev, each.frozen_depth, inserted, bool(each.train_after))


def run_study(folder: Path, layers: int, rows: int) -> tuple[list[RunRecord], Shape, int, int]:
    """The default strategies, one seed, few epochs."""
    encoder = folder / f"encoder-{layers}"
    if not encoder.is_dir():
        _make_encoder(encoder, layers)
    data = folder / f"data-{rows}"
    dev = max(32, round(rows * DEV_SHARE))
    data.mkdir(exist_ok=True)
    for name, count in (("train", rows), ("dev", dev), ("test", 32)):
        _write_rows(data / f"{name}.csv", count)
    study = totune.compare(
        data,
        out=folder / f"study-{layers}-{rows}",
        model=str(encoder),
        strategies=[name for name in DEFAULT_STRATEGIES if name != "tf-idf"],
        seeds=1,
        options={**EPOCHS, "stack_epochs": 2},
        cache_dir=folder / "cache",
    )
    return study.records, Shape(layers, WIDTH, PIECES), rows, dev


def _make_encoder(folder: Path, layers: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(resolve("minilm").folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _write_rows(path: Path, count: int) -> None:
    """Rows of as many words, each one piece, as fill `PIECES`; the label is in the words."""
    random = np.random.default_rng(count)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(count):
            words = random.choice(WORDS, PIECES - 3).tolist()
            writer.writerow((" ".join([("yes", "no")[number % 2], *words]), "ab"[number % 2]))


def fit(points: Sequence[tuple[Work, float, str]]) -> np.ndarray:
    """The three prices in seconds, by relative least squares: [3]."""
    work = np.array([w.vector for w, _, _ in points])
    seconds = np.array([s for _, s, _ in points])
    scale = work.max(axis=0)
    found, _ = nnls(work / scale / seconds[:, None], np.ones(len(seconds)))
    prices: np.ndarray = found / scale
    return prices


def run_work(strategy: str, shape: Shape, train: int) -> Work:
    """A whole run with the strategy's default epochs; features of what is frozen apart."""
    dev, layers = round(train * DEV_SHARE), shape.layers
    inserted = strategy in INSERTED
    if strategy == "gradual-unfreezing":  # one epoch per opening, two when all is open
        depths = [*range(layers, 0, -1), 0, -1, -1]
    elif strategy == "stack-and-finetune":
        depths = [layers] * STACK_EPOCHS + [-1] * 3
    else:
        frozen = {"feature-extraction": layers, "last-2": layers - 2, "adapters": 0, "lora": 0}
        depths = [frozen.get(strategy, -1)] * FULL_EPOCHS[strategy]
    work = Work()
    for depth in depths:
        work += epoch(shape, train, dev, depth, inserted)
    return work + epoch(shape, 0, 2 * dev, -1, inserted)  # dev and test at the end


def study_work(shape: Shape, train: int, seeds: int) -> tuple[dict[str, Work], Work]:
    """The work of one run of each strategy, and that of the frozen features, made once a node."""
    runs = {name: run_work(name, shape, train) for name in DEFAULT_STRATEGIES if name != "tf-idf"}
    rows = train * (1 + 2 * DEV_SHARE)
    features = Work(rows * shape.layers * shape.operations, 0.0, rows)
    return runs, features


def makespan(seconds: Sequence[float], devices: int) -> float:
    """When all jobs are done, the longest begun first, each by the first device that is free."""
    free = [0.0] * devices
    for job in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + job)
    return max(free)


def forecast(
    prices: np.ndarray, shape: Shape, train: int, seeds: int, devices: Sequence[int]
) -> dict[str, Any]:
    """What a study of the default strategies takes, in device seconds and by the clock."""
    runs, features = study_work(shape, train, seeds)
    seconds = {name: float(np.dot(work.vector, prices)) for name, work in runs.items()}
    once = float(np.dot(features.vector, prices))
    jobs = [each for each in seconds.values() for _ in range(seeds)]
    return {
        "seconds_per_run": seconds,
        "features_seconds": once,
        "device_seconds": sum(jobs) + once,
        "clock_seconds": {str(n): makespan(jobs, n) + once for n in devices},
    }


def on_a_gpu(prices: np.ndarray, rate: float, gpu_rate: float) -> np.ndarray:
    """Prices on a device of another matrix rate at which totune reaches the same share of it.

    Nothing of this was measured on a GPU; rows are priced as here, which is too dear for it.
    """
    found: np.ndarray = prices * np.array([rate / gpu_rate, rate / gpu_rate, 1.0])
    return found


def main(gpu_tflops: float = 400.0) -> None:
    """Measures, fits, checks and writes `benchmarks/results/scaling.json`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        points: list[tuple[Work, float, str]] = []
        for layers, rows in FIT:
            points += measured(*run_study(folder, layers, rows))
        prices = fit(points)
        checked = list(measured(*run_study(folder, *CHECK)))
    precision = machine.choose_precision("auto")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    rate = 1e9 * machine.matmul_rate(dtype, torch.device("cpu"), 1024)
    errors = {}
    for name in dict.fromkeys(strategy for _, _, strategy in checked):
        own = [(work, seconds) for work, seconds, strategy in checked if strategy == name]
        told = sum(float(np.dot(work.vector, prices)) for work, _ in own)
        errors[name] = told / sum(seconds for _, seconds in own)
        print(f"  {name}: forecast {errors[name]:.2f}x what was measured")
    shares = [1 / (price * rate) if price else None for price in prices[:2]]
    print(f"  forward at {shares[0]:.0%}, backward at {shares[1]:.0%} of the matrix rate")
    base = Shape(12, 768, 128)
    gpu = on_a_gpu(prices, rate, gpu_tflops * 1e12)
    study = forecast(gpu, base, 1_000_000, 5, (1, 16))
    for devices, clock in study["clock_seconds"].items():
        print(f"  1M rows, base encoder, 5 seeds, {devices} GPU(s): {clock / 3600:.1f} h")
    figures = {
        "what": f"{len(points)} epochs on encoders of width {WIDTH}, {PIECES} pieces a row",
        "precision": precision,
        "prices": {"forward": prices[0], "backward": prices[1], "row": prices[2]},
        "matrix_rate": rate,
        "forecast_over_measured": errors,
        "gpu": {"assumed_matrix_rate": gpu_tflops * 1e12, **study},
    }
    path = save("scaling", figures)
    print(f"what a study costs: -> {path.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu-tflops", type=float, default=400.0, help="matrix rate of the GPU")
    main(parser.parse_args().gpu_tflops)
