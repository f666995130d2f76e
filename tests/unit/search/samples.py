"""A study's context of a tiny encoder and few rows, on which a trial takes little."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tests.encoder_zoo import tiny_encoder
from tests.recorder import Recorder
from tests.tiny_runs import MAX_LENGTH, tiny_examples, tiny_task, tiny_tokenizer

from totune.data.examples import Columns, Dataset, Examples
from totune.encoders.loading import Loaded
from totune.features import FeatureCache
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.search.records import SearchRecord
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings

# Few epochs, and only two options to search.
FEATURES = Candidate(
    "feature-extraction",
    {
        "solver": "gradient",
        "num_train_epochs": 3,
        "patience": 3,
        "warmup_ratio": 0.1,
        "weight_decay": 0.01,
    },
)
TF_IDF = Candidate("tf-idf")


class Unread:
    """A test split that must not be looked at; its digest alone is known."""

    def digest(self) -> str:
        return "unread"

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a search reads {name} of the test split")

    def __len__(self) -> int:
        raise AssertionError("a search counts the test split")

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("a search reads the test split")


def context_of(folder: Path, kind: str = "classification", rows: int = 24) -> Context:
    """What a study's runs share; its test split cannot be read."""
    train, dev = tiny_examples(kind, rows), tiny_examples(kind, 12, seed=1)
    columns = Columns("text", "label", None, cast(Any, kind))
    task = tiny_task(kind, train)
    return Context(
        dataset=Dataset("tiny", train, dev, cast(Examples, Unread()), columns),
        task=task,
        pretrained=Loaded(
            tiny_encoder("bert"), tiny_tokenizer(), "tiny", "tiny", "A tiny encoder."
        ),
        cache=FeatureCache(folder, budget_bytes=10**8),
        settings=TrainingSettings(task.metrics[0], train_batch_size=8),
        precision="fp32",
        max_length=MAX_LENGTH,
        devices=Devices(),
        progress=Recorder(),
    )


def told(context: Context) -> list[str]:
    assert isinstance(context.progress, Recorder)
    return context.progress.said


def without_times(record: SearchRecord) -> SearchRecord:
    """The same but for what a clock measured."""
    return replace(record, trials=[replace(trial, seconds=0.0) for trial in record.trials])
