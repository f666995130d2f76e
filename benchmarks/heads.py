"""How fast each head trains from the cache, and how fast the same batches are read alone.

Frozen MiniLM, all layers mixed, 1,024 sentences of rotten-tomatoes (pairs: each with the next one;
words: tagged as long or short, for labels do not matter here). What a head does not take, reading
does: where reading alone is many times faster, the head is the limit.
"""

import copy
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import save
from totune.data.examples import Examples
from totune.data.sources import load_dataset
from totune.encoders.loading import Loaded, load_encoder
from totune.features import FeatureCache
from totune.heads.base import HEADS, InputKind
from totune.inputs.encoded import EncodingOptions, frame
from totune.machine import choose_precision, keep_freed_memory
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.tasks.base import TASKS
from totune.training.inputs import InputSource, Split, open_source
from totune.training.trainer import Trainer, TrainingSettings

ROWS = 1024
DEV_ROWS = 32
BATCH = 32
MAX_LENGTH = 256
LONG = 6  # characters
EPOCHS = 2  # measured, after one that warms up


def examples_for(wants: InputKind, rows: Examples) -> Examples:
    """The sentences as rows of the kind that a head reads."""
    if wants == "words":
        words = tuple(tuple(text.split()) for text in rows.texts)
        tags = tuple(tuple("B-L" if len(w) > LONG else "O" for w in row) for row in words)
        return Examples(rows.texts, tags, words=words)
    if wants in ("pair", "pooled-pair"):
        return Examples(rows.texts, rows.labels, (*rows.texts[1:], rows.texts[0]))
    return rows


def read_alone(source: InputSource) -> float:
    """Seconds to read every batch once."""
    order = np.argsort(source.units.lengths)
    began = time.perf_counter()
    for start in range(0, len(order), BATCH):
        source.batch(order[start : start + BATCH], torch.device("cpu"))
    return time.perf_counter() - began


def measure(
    name: str, wants: InputKind, loaded: Loaded, data: Examples, cache: FeatureCache
) -> Any:
    """Examples per second of one head."""
    rows = examples_for(wants, data)
    task = TASKS.get("tagging" if wants == "words" else "classification").from_examples(rows)
    encoding_options = EncodingOptions("separate" if wants.endswith("pair") else "joint")

    def split(chosen: Examples) -> Split:
        units = frame(chosen, loaded.tokenizer, MAX_LENGTH, encoding_options)
        return Split.labelled("rows", units, task, chosen.labels or ())

    steps = {"num_train_epochs": 1 + EPOCHS, "solver": "gradient", "layers": "scalar-mix"}
    strategy = STRATEGIES.create("feature-extraction", steps)
    torch.manual_seed(0)
    encoder = copy.deepcopy(loaded.encoder)
    head, precision = HEADS.create(name), choose_precision("auto")
    model = Model(encoder, strategy.readout(encoder, wants), head, task, precision)
    train, dev = split(rows), split(rows.take(range(DEV_ROWS)))
    settings = TrainingSettings(task.metrics[0], BATCH)
    trainer = Trainer(model, train, dev, settings, 0, cache=cache)
    seconds: list[float] = []
    plan = strategy.plan(model)
    trainer.fit(plan, on_epoch=lambda _: seconds.append(trainer.history.step_seconds))
    source = open_source(train, model, cache, model.freeze_prefix(), training=True)
    read_alone(source)
    reading = min(read_alone(source) for _ in range(3))
    return {
        "reads": wants,
        "parameters": sum(p.numel() for p in model.head.parameters()),
        "examples_per_second": EPOCHS * len(rows) / (seconds[-1] - seconds[0]),
        "read_alone_per_second": len(rows) / reading,
    }


def main() -> None:
    """Measures every head and writes `heads.json`."""
    keep_freed_memory()
    loaded, data = load_encoder(), load_dataset("example:rotten-tomatoes").train.take(range(ROWS))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = FeatureCache(Path(folder))
        for name in HEADS.names():
            for wants in HEADS.get(name).wants:
                figures = measure(name, wants, loaded, data, cache)
                found[f"{name} ({wants})"] = figures
                print(
                    f"{name} ({wants}): {figures['examples_per_second']:,.0f} examples/s, read "
                    f"alone {figures['read_alone_per_second']:,.0f}",
                    flush=True,
                )
    facts = {"encoder": "minilm", "rows": ROWS, "batch": BATCH, "heads": found}
    print(f"-> {save('heads', facts).name}")


if __name__ == "__main__":
    main()
