"""Tiny tasks, tokenizers, models and training runs, for tests of what trains."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from tests.encoder_zoo import PADDING, VOCABULARY, tiny_encoder
from tests.recorder import Killed
from tokenizers import models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from totune.data.examples import Examples
from totune.encoders.encoder import Encoder
from totune.features import FeatureCache
from totune.heads.base import HEADS
from totune.inputs.encoded import EncodingOptions, frame
from totune.inputs.encodings import Tokenizer
from totune.model import Model, wants_of
from totune.progress import Progress
from totune.registry import option_names
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.phases import Phase
from totune.tasks.base import TASKS, Task
from totune.tasks.classification import Classification
from totune.training.history import EpochRecord
from totune.training.inputs import Split
from totune.training.trainer import Trainer, TrainingSettings

WORDS = [f"w{number}" for number in range(VOCABULARY - 5)]
KINDS = ("classification", "regression", "pairs")
MAX_LENGTH = 20


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """WordPiece over the zoo's vocabulary: special pieces first, then `WORDS`."""
    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: number for number, piece in enumerate([*special, *WORDS])}
    assert vocabulary["[PAD]"] == PADDING
    backend = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        model_max_length=40,
    )


def tiny_examples(kind: str = "classification", rows: int = 20, seed: int = 0) -> Examples:
    """Random sentences of 1 to 9 words; the label follows from the first word."""
    random = np.random.default_rng(seed)
    numbers = [random.integers(0, len(WORDS), random.integers(1, 10)) for _ in range(rows)]
    if kind == "tagging":
        return tagged_examples([len(row) for row in numbers], seed)
    texts = tuple(" ".join(WORDS[i] for i in row) for row in numbers)
    firsts = [int(row[0]) for row in numbers]
    pairs = tuple(reversed(texts)) if kind == "pairs" else None
    if kind == "regression":
        return Examples(texts, tuple(first / 10 + 1 for first in firsts))
    if kind == "multi-label":
        names = [(first % 2 and "a", first % 3 and "b", first % 5 == 0 and "c") for first in firsts]
        return Examples(texts, tuple(tuple(name for name in row if name) for row in names))
    return Examples(texts, tuple("abc"[first % 3] for first in firsts), pairs)


def tiny_words(lengths: Sequence[int], seed: int = 0) -> list[list[str]]:
    """Random words, as many in each row as `lengths` says; no row depends on another's length."""
    random = np.random.default_rng(seed)
    rows = [random.integers(0, len(WORDS), 40)[:length] for length in lengths]
    return [[WORDS[number] for number in row] for row in rows]


def tagged_examples(lengths: Sequence[int], seed: int = 0) -> Examples:
    """Sentences in documents of two; the tag follows from the word, some words have 3 pieces."""
    rows = tiny_words(lengths, seed)
    tags = [[("O", "B-A", "B-B", "O")[WORDS.index(word) % 4] for word in row] for row in rows]
    words = [[f"{word}-{word}" if word.endswith("7") else word for word in row] for row in rows]
    return Examples(
        texts=tuple(" ".join(row) for row in words),
        labels=tuple(tuple(row) for row in tags),
        words=tuple(tuple(row) for row in words),
        documents=tuple(number // 2 for number in range(len(rows))),
    )


def tiny_task(kind: str, train: Examples) -> Task:
    name = kind if kind in TASKS.names() else "classification"
    return TASKS.get(name).from_examples(train)


def split_of(
    name: str,
    examples: Examples,
    task: Task,
    encoding_options: EncodingOptions | None = None,
    tokenizer: Tokenizer | None = None,
) -> Split:
    units = frame(
        examples, tokenizer or tiny_tokenizer(), MAX_LENGTH, encoding_options or EncodingOptions()
    )
    return Split.labelled(name, units, task, examples.labels or ())


def classes(count: int) -> Classification:
    """A label space of so many classes: "a", "b", ..."""
    return Classification(tuple("abcdefgh"[:count]))


@dataclasses.dataclass(frozen=True)
class TinyTask:
    """A task with its splits and its first metric."""

    task: Task
    train: Split
    dev: Split

    @classmethod
    def of(
        cls,
        kind: str,
        rows: int = 20,
        encoding_options: EncodingOptions | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> "TinyTask":
        train, dev = tiny_examples(kind, rows), tiny_examples(kind, 10, seed=1)
        task = tiny_task(kind, train)
        named = (("train", train), ("dev", dev))
        splits = (split_of(*both, task, encoding_options, tokenizer) for both in named)
        return cls(task, *splits)

    @property
    def settings(self) -> TrainingSettings:
        return TrainingSettings(self.task.metrics[0], train_batch_size=8)


def short(name: str, **options: Any) -> Strategy:
    """A strategy by name, with few epochs unless `options` say how many."""
    names = option_names(STRATEGIES.get(name))
    few = {"num_train_epochs": 2} if "num_train_epochs" in names else {}
    return STRATEGIES.create(name, few | options)


def stepped(name: str, **options: Any) -> Strategy:
    """A short strategy that trains its head by gradient, though it might be solved."""
    known = option_names(STRATEGIES.get(name))
    return short(name, **({"solver": "gradient"} if "solver" in known else {}), **options)


def tiny_model(
    strategy: Strategy, encoder: str | Encoder, task: Task | int, seed: int = 0, **head: Any
) -> tuple[Model, list[Phase]]:
    """A prepared model and its plan, as a run builds them."""
    task = classes(task) if isinstance(task, int) else task
    wants = wants_of(HEADS.create("linear"), task)
    built = tiny_encoder(encoder, seed) if isinstance(encoder, str) else encoder
    options = {**strategy.head_defaults(built, wants), **head}
    linear = HEADS.create("linear", options)
    model = Model(built, strategy.readout(built, wants), linear, task)
    strategy.prepare(model)
    return model, strategy.plan(model)


def fit(
    model: Model,
    plan: list[Phase],
    tiny: TinyTask,
    *,
    order_seed: int = 0,
    cache: FeatureCache | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[EpochRecord], None] = lambda _: None,
    progress: Progress | None = None,
    settings: TrainingSettings | None = None,
) -> Trainer:
    """Trains and returns the trainer; dropout draws from a fixed state."""
    trainer = Trainer(
        model,
        tiny.train,
        tiny.dev,
        settings or tiny.settings,
        order_seed,
        cache=cache,
        progress=progress,
    )
    torch.manual_seed(7)
    trainer.fit(plan, checkpoint, on_epoch)
    return trainer


def kill_after(epoch: int) -> Callable[[EpochRecord], None]:
    """An `on_epoch` that ends the run when this epoch is reported."""

    def on_epoch(record: EpochRecord) -> None:
        if record.epoch == epoch:
            raise Killed

    return on_epoch


def forget_hashes(folder: Path) -> None:
    """Makes a model's folder one of an earlier version, which had no hashes."""
    description = folder / "totune.json"
    facts = json.loads(description.read_text())
    known = {name: fact for name, fact in facts.items() if name not in ("files", "sha256")}
    description.write_text(json.dumps(known))


def weights(model: Model) -> dict[str, torch.Tensor]:
    """A copy of every parameter by name, those outside the parts too."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def metrics_of(trainer: Trainer) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [(epoch.train, epoch.dev) for epoch in trainer.history.epochs]


def assert_same_training(found: Model, expected: Model) -> None:
    """Equal weights up to rounding.

    The bias of attention's keys has no gradient (softmax does not see it), so Adam makes steps of
    its rounding noise; it changes no output.
    """
    for name, parameter in expected.named_parameters():
        atol = 1e-3 if "key.bias" in name else 1e-5
        torch.testing.assert_close(found.get_parameter(name), parameter, atol=atol, rtol=0)
