"""What the frozen-prefix cache is worth: an epoch of training with it against one without.

(a) feature extraction with MiniLM, (b) last-2 of a twelve-layer encoder. Both sides train the same
model on the same rows in the same process, in turn; filling the cache is timed apart.
"""

import copy
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig

from benchmarks.common import SHARED, ratio, save
from totune.data.examples import Examples
from totune.data.sources import load_dataset
from totune.encoders.loading import Loaded, load_encoder
from totune.encoders.transformers import TransformersEncoder
from totune.features import FeatureCache
from totune.heads.base import HEADS
from totune.inputs.encoded import frame
from totune.machine import choose_precision
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.tasks.base import TASKS, Task
from totune.training.inputs import Split
from totune.training.trainer import Trainer, TrainingSettings

ROWS = 1024
ROUNDS = 3
CACHED_EPOCHS = 3
MAX_LENGTH = 256


def twelve_layers() -> tuple[Loaded, str]:
    """gte-small, or an encoder of its size with random weights where it is not to be had."""
    folder = SHARED / "models" / "gte-small"
    if folder.is_dir():
        return load_encoder(str(folder)), "gte-small"
    small = load_encoder()
    config = BertConfig(
        num_hidden_layers=12, hidden_size=384, num_attention_heads=12, intermediate_size=1536
    )
    encoder = TransformersEncoder.from_config(config)
    return Loaded(encoder, small.tokenizer, "", "random", ""), "random weights, gte-small's size"


def epoch_seconds(
    loaded: Loaded,
    strategy: str,
    task: Task,
    splits: dict[str, Split],
    cache: FeatureCache | None,
    epochs: int,
) -> list[float]:
    """Seconds of each training epoch, evaluation and cache filling excluded."""
    torch.manual_seed(0)
    encoder = copy.deepcopy(loaded.encoder)
    options: dict[str, Any] = {"num_train_epochs": epochs}
    if strategy == "feature-extraction":  # what is measured is an epoch of steps over a learned mix
        options |= {"patience": epochs, "solver": "gradient", "layers": "scalar-mix"}
    chosen = STRATEGIES.create(strategy, options)
    head = HEADS.create("linear", chosen.head_defaults(encoder))
    precision = choose_precision("auto")
    model = Model(encoder, chosen.readout(encoder), head, task, precision)
    seconds: list[float] = []
    settings = TrainingSettings("accuracy")
    trainer = Trainer(model, splits["train"], splits["dev"], settings, 0, cache=cache)
    before = 0.0

    def note(_: object) -> None:
        nonlocal before
        seconds.append(trainer.history.step_seconds - before)
        before = trainer.history.step_seconds

    trainer.fit(chosen.plan(model), on_epoch=note)
    return seconds


def measure(name: str, loaded: Loaded, encoder_name: str, strategy: str) -> dict[str, Any]:
    """Epochs with and without the cache, in turn."""
    data = load_dataset("example:rotten-tomatoes")
    train, dev = data.train.take(range(ROWS)), data.dev.take(range(64))
    task = TASKS.get("classification").from_examples(train)

    def split(split_name: str, rows: Examples) -> Split:
        units = frame(rows, loaded.tokenizer, MAX_LENGTH)
        return Split.labelled(split_name, units, task, rows.labels or ())

    splits = {"train": split("train", train), "dev": split("dev", dev)}
    with tempfile.TemporaryDirectory() as folder:
        cache = FeatureCache(Path(folder))
        epoch_seconds(loaded, strategy, task, splits, cache, 1)  # fills the cache, warms up
        filling = cache.seconds
        cached: list[float] = []
        uncached: list[float] = []
        for _ in range(ROUNDS):
            uncached += epoch_seconds(loaded, strategy, task, splits, None, 1)
            cached += epoch_seconds(loaded, strategy, task, splits, cache, CACHED_EPOCHS)
    figures = {
        "what": f"{strategy}, one training epoch over {ROWS} rows of rotten-tomatoes",
        "encoder": encoder_name,
        "precision": choose_precision("auto"),
        "uncached_seconds": uncached,
        "cached_seconds": cached,
        "filling_seconds": filling,
        "ratio": ratio(uncached, cached),
        "ratio_ten_epochs_with_filling": 10
        * statistics.median(uncached)
        / (filling + 10 * statistics.median(cached)),
    }
    path = save(name, figures)
    print(
        f"{strategy} ({encoder_name}): a cached epoch is {figures['ratio']:.1f}x as fast; ten "
        f"epochs with filling {figures['ratio_ten_epochs_with_filling']:.1f}x -> {path.name}"
    )
    return figures


def main() -> None:
    """Measures both and writes their results."""
    measure("feature_extraction_cached", load_encoder(), "minilm", "feature-extraction")
    loaded, name = twelve_layers()
    measure("last_2_of_12_cached", loaded, name, "last-2")


if __name__ == "__main__":
    main()
