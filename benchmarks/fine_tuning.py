"""Fine-tuning speed against transformers' `Trainer`, in its default and in its best configuration.

Same encoder (MiniLM), rows (MRPC), batch size, length limit, learning rate, schedule and epochs, in
one process and in turn. Default: float32, random batches. Best: bfloat16, rows grouped by length.
Only training steps are timed; dev accuracy is measured afterwards on both sides.
"""

import argparse
import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from benchmarks.common import SHARED, ratio, save
from totune import machine
from totune.data.examples import Dataset, Examples
from totune.data.sources import load_dataset
from totune.encoders.loading import Loaded, load_encoder, quiet
from totune.encoders.sources import resolve
from totune.heads.base import HEADS
from totune.inputs.encoded import frame, tokenize
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.tasks.base import TASKS, Task
from totune.training import trainer as ours
from totune.training.inputs import Split

MAX_LENGTH = 128
BATCH = 32
RATE = 5e-5

# name -> (examples per second of training, dev accuracy) for a seed
Side = Callable[[int, int], tuple[float, float]]


def trainer_side(data: Dataset, task: Task, loaded: Loaded, **arguments: Any) -> Side:
    """Transformers' own loop."""
    folder = str(resolve("minilm").folder)

    def encoded(rows: Examples) -> list[dict[str, Any]]:
        texts, pairs = list(rows.texts), list(rows.pairs or ())
        pieces = loaded.tokenizer(texts, pairs, truncation=True, max_length=MAX_LENGTH)
        labels = task.targets(rows.labels or ())
        return [
            {name: values[i] for name, values in pieces.items()} | {"labels": int(labels[i])}
            for i in range(len(rows))
        ]

    train, dev = encoded(data.train), encoded(data.dev)

    def run(seed: int, epochs: int) -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as out, quiet():
            settings = TrainingArguments(
                out,
                seed=seed,
                use_cpu=not torch.cuda.is_available(),
                learning_rate=RATE,
                num_train_epochs=epochs,
                per_device_train_batch_size=BATCH,
                per_device_eval_batch_size=128,
                warmup_steps=round(0.1 * epochs * -(-len(train) // BATCH)),
                weight_decay=0.01,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                **arguments,
            )
            torch.manual_seed(seed)
            model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
            loop = Trainer(
                model,
                settings,
                data_collator=DataCollatorWithPadding(loaded.tokenizer),
                train_dataset=train,  # type: ignore[arg-type]
                eval_dataset=dev,  # type: ignore[arg-type]
                compute_metrics=lambda p: {"right": (p[0].argmax(-1) == p[1]).mean()},
            )
            began = time.perf_counter()
            loop.train()
            seconds = time.perf_counter() - began
            accuracy = loop.evaluate()["eval_right"]
        return len(train) * epochs / seconds, float(accuracy)

    return run


def totune_side(data: Dataset, task: Task, loaded: Loaded) -> Side:
    """Totune's trainer, as a study runs it, without its evaluations' time."""

    def split(name: str, rows: Examples) -> Split:
        units = frame(rows, loaded.tokenizer, MAX_LENGTH)
        return Split.labelled(name, units, task, rows.labels or ())

    splits = {"train": split("train", data.train), "dev": split("dev", data.dev)}

    def run(seed: int, epochs: int) -> tuple[float, float]:
        torch.manual_seed(seed)
        encoder = copy.deepcopy(loaded.encoder)
        options = {"learning_rate": RATE, "num_train_epochs": epochs}
        strategy = STRATEGIES.create("fine-tuning", options)
        head = HEADS.create("linear", strategy.head_defaults(encoder))
        precision = machine.choose_precision("auto")
        model = Model(encoder, strategy.readout(encoder), head, task, precision)
        settings = ours.TrainingSettings("accuracy", BATCH)
        loop = ours.Trainer(model, splits["train"], splits["dev"], settings, seed)
        history = loop.fit(strategy.plan(model))
        # The last epoch, as the other side has it, not the best one.
        return history.examples / history.step_seconds, history.epochs[-1].dev["accuracy"]

    return run


def main(epochs: int = 2, seeds: int = 2) -> None:
    """Measures all sides in turn and writes `benchmarks/results/fine_tuning.json`."""
    folder = SHARED / "data" / "mrpc"
    if not folder.is_dir():
        print(f"fine-tuning against Trainer: skipped, no MRPC at {folder} (set TOTUNE_SHARED)")
        return
    files = {"train": folder / "train.tsv.gz", "dev": folder / "dev.tsv"}
    data = load_dataset(files, text="#1 String", pair="#2 String", label="Quality")
    task = TASKS.get("classification").from_examples(data.train)
    loaded = load_encoder()
    best = {"train_sampling_strategy": "group_by_length"}
    best |= {"bf16": machine.choose_precision("auto") == "bf16"}  # type: ignore[dict-item]
    sides = {
        "totune": totune_side(data, task, loaded),
        "trainer_best": trainer_side(data, task, loaded, **best),
        "trainer_default": trainer_side(data, task, loaded),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    accuracies: dict[str, list[float]] = {name: [] for name in sides}
    for seed in range(seeds):
        for name, side in sides.items():
            if name == "trainer_default" and seed > 0:
                continue  # it takes as long as the others together, and is far from the aim
            rate, accuracy = side(seed, epochs)
            rates[name].append(rate)
            accuracies[name].append(accuracy)
            print(f"  {name}, seed {seed}: {rate:.1f} examples/s, dev accuracy {accuracy:.3f}")
    report(data, epochs, rates, accuracies)


def report(
    data: Dataset, epochs: int, rates: dict[str, list[float]], accuracies: dict[str, list[float]]
) -> None:
    """Prints the ratios and saves everything."""
    ceiling = machine.matmul_rate(torch.bfloat16), machine.matmul_rate(torch.float32)
    figures = {
        "what": f"fine-tuning MiniLM on MRPC ({len(data.train)} pairs), {epochs} epochs, "
        f"batch {BATCH}, at most {MAX_LENGTH} pieces",
        "precision": machine.choose_precision("auto"),
        "examples_per_second": rates,
        "dev_accuracy": accuracies,
        "ratio_to_default": ratio(rates["totune"], rates["trainer_default"]),
        "ratio_to_best": ratio(rates["totune"], rates["trainer_best"]),
        "matmul_gflops_bf16": ceiling[0],
        "matmul_gflops_fp32": ceiling[1],
        "share_of_matmul_rate": _share(data, rates["totune"], ceiling[0]),
    }
    path = save("fine_tuning", figures)
    print(
        f"fine-tuning: {figures['ratio_to_default']:.2f}x Trainer's default, "
        f"{figures['ratio_to_best']:.2f}x its best, "
        f"{100 * figures['share_of_matmul_rate']:.0f}% of the matrix rate -> {path.name}"  # type: ignore[operator]
    )


def _share(data: Dataset, rates: list[float], ceiling: float) -> float:
    """Matrix-multiply work done per second, as a share of the measured bfloat16 rate.

    A training step costs 6 operations per weight matrix entry and word piece (2 forward, 4
    backward), and 12 T H per piece and layer for attention's two products.
    """
    loaded = load_encoder()
    pieces = tokenize(data.train, loaded.tokenizer, MAX_LENGTH).lengths
    encoder = loaded.encoder
    matrices = sum(
        p.numel()
        for depth in range(1, encoder.depth + 1)
        for _, p in encoder.block_parameters(depth)
        if p.ndim == 2
    )
    dense = 6 * matrices * pieces.mean()
    attention = 12 * encoder.depth * encoder.width * (pieces.astype(float) ** 2).mean()
    return statistics.median(rates) * (dense + attention) / (ceiling * 1e9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=2)
    chosen = parser.parse_args()
    main(chosen.epochs, chosen.seeds)
