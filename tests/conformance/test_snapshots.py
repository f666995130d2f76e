"""Every encoder reaches another process whole: the same fingerprint, and the same states."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.conformance.test_word_encoders import tiny_elmo, tiny_flair
from tests.encoder_zoo import TINY, tiny_encoder
from tests.tiny_runs import tiny_examples, tiny_task, tiny_tokenizer

from totune.data.examples import Columns, Dataset
from totune.encoders.loading import Loaded
from totune.features import FeatureCache
from totune.inputs.encoded import EncodingOptions
from totune.metrics import METRICS
from totune.progress import Progress
from totune.runs.context import Context
from totune.runs.executors.transfer import Event, Snapshot
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings


def context_of(name: str, cache: Path) -> Context:
    word_encoders = {"elmo": tiny_elmo, "flair": tiny_flair}
    if name in word_encoders:
        encoder, tokenizer = word_encoders[name]()
    else:
        encoder, tokenizer = tiny_encoder(name), tiny_tokenizer()
    rows = [tiny_examples(seed=seed) for seed in range(3)]
    return Context(
        dataset=Dataset("tiny", *rows, Columns("text", "label")),
        task=tiny_task("classification", rows[0]),
        pretrained=Loaded(encoder, tokenizer, name, name, ""),
        cache=FeatureCache(cache),
        settings=TrainingSettings("accuracy"),
        precision="fp32",
        max_length=6,
        devices=Devices(),
        progress=Progress(),
        split_seed=3,
        batch_by_rule=True,
        tune_threshold=True,
    )


@pytest.mark.parametrize("name", [*TINY, "elmo", "flair"])
def test_what_runs_share_arrives_whole(name: str, tmp_path: Path) -> None:
    context = context_of(name, tmp_path / "ours")
    context.split("train", EncodingOptions())
    sent: list[Event] = []
    file = tmp_path / "snapshot.pt"
    Snapshot(context, tmp_path / "theirs", 10_000_000).save(file)
    other = Snapshot.load(file).restore(sent.append)
    assert other.loaded.encoder.fingerprint() == context.loaded.encoder.fingerprint()
    assert not any(module.training for module in other.loaded.encoder.modules())
    for split in ("train", "dev"):
        ours, theirs = (
            each.split(cast(Any, split), EncodingOptions()) for each in (context, other)
        )
        assert theirs.pieces.identity == ours.pieces.identity
    rows = context.dataset.dev
    assert np.array_equal(other.embed(rows), context.embed(rows))
    assert [event.method for event in sent] == ["warn"]  # of dev: train was cut before
    assert (other.dataset, other.task, other.settings) == (
        context.dataset,
        context.task,
        context.settings,
    )
    assert (other.cache.root, other.cache.budget_bytes) == (tmp_path / "theirs", 10_000_000)
    assert (other.max_length, other.split_seed, other.precision) == (6, 3, "fp32")
    assert other.batch_by_rule
    assert other.tune_threshold


def test_a_worker_imports_the_function_that_a_person_named(tmp_path: Path) -> None:
    name, file = "statistics:covariance", tmp_path / "snapshot.pt"
    context = replace(context_of("bert", tmp_path), settings=TrainingSettings(name))
    Snapshot(context, tmp_path / "theirs", 10_000_000).save(file)
    assert name not in METRICS
    Snapshot.load(file).restore(lambda _: None)
    assert METRICS.pop(name)(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0])) == 7 / 3
