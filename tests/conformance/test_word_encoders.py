"""Language models over words under every strategy, task and way of saving."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tiny_runs import (
    Killed,
    TinyTask,
    fit,
    kill_after,
    metrics_of,
    short,
    tiny_examples,
    tiny_model,
    weights,
)

from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.options import ElmoOptions
from totune.encoders.encoder import Encoder
from totune.encoders.flair.encoder import FlairLmEncoder
from totune.encoders.flair.options import FlairOptions
from totune.encoders.loading import load_encoder
from totune.encoders.words import Vocabulary, WordTokenizer
from totune.errors import ConfigError
from totune.export import load_model, save_model
from totune.features import FeatureCache
from totune.inputs.encodings import Tokenizer
from totune.strategies.base import STRATEGIES, Strategy
from totune.training.inputs import open_source, predict

Made = tuple[Encoder, Tokenizer]


def tiny_elmo(seed: int = 0) -> Made:
    options = ElmoOptions(
        projection_size=8,
        cell_size=12,
        layers=2,
        cell_clip=3.0,
        projection_clip=3.0,
        residual=True,
        character_size=4,
        filters=((1, 6), (2, 8)),
        highway_layers=1,
        word_length=14,
    )
    vocabulary = Vocabulary()
    torch.manual_seed(seed)
    encoder = ElmoEncoder(options, vocabulary)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return encoder.eval(), WordTokenizer(vocabulary, encoder.max_length)


def tiny_flair(seed: int = 0) -> Made:
    alphabet = ("<unk>", " ", "\n", *"abcdefghijklmnopqrstuvwxyz0123456789-")
    vocabulary = Vocabulary()
    torch.manual_seed(seed)
    encoder = FlairLmEncoder(FlairOptions(8, 4, alphabet, alphabet), vocabulary)
    return encoder.eval(), WordTokenizer(vocabulary, encoder.max_length)


def made(name: str, encoder: Encoder, **options: Any) -> Strategy:
    """A short strategy that fits the encoder's depth."""
    shallow = {"k": 1} if name == "last-k" and encoder.depth == 1 else {}
    return short(name, **shallow, **options)


MAKERS: dict[str, Callable[[], Made]] = {"elmo": tiny_elmo, "flair": tiny_flair}
INSERTING = {"adapters", "lora", "peft"}
FITTING = [name for name in STRATEGIES.names() if name not in INSERTING]

USUAL = ("feature-extraction", "fine-tuning")

words = pytest.mark.parametrize("kind_of_encoder", MAKERS)
each = pytest.mark.parametrize("name", FITTING)
# What is slow of strategies by tasks runs code that other cells run too.
each_by_task = pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            *(name, kind),
            marks=() if kind == "classification" or name in USUAL else pytest.mark.slow,
        )
        for name in FITTING
        for kind in ("classification", "regression", "pairs", "tagging")
        if (name, kind) not in {("contrastive", "regression"), ("contrastive", "tagging")}
    ],
)


@words
@each_by_task
def test_every_strategy_and_task(kind_of_encoder: str, name: str, kind: str) -> None:
    encoder, tokenizer = MAKERS[kind_of_encoder]()
    tiny = TinyTask.of(kind, tokenizer=tokenizer)
    model, plan = tiny_model(made(name, encoder, num_train_epochs=1), encoder, tiny.task)
    before = weights(model)
    states: list[dict[str, torch.Tensor]] = []
    trainer = fit(model, plan, tiny, on_epoch=lambda _: states.append(weights(model)))
    trained = set(trainer.history.epochs[0].train)
    assert trained >= set(tiny.task.metrics)
    changed = {n for n, tensor in states[-1].items() if not torch.equal(tensor, before[n])}
    assert any(n.startswith("head.") for n in changed)
    assert any(n.startswith("encoder.") for n in changed) == (name != "feature-extraction")
    assert all(torch.isfinite(tensor).all() for tensor in states[-1].values())


@words
@each
def test_the_cache_changes_no_result(kind_of_encoder: str, name: str, tmp_path: Path) -> None:
    results = []
    for cache in (None, FeatureCache(tmp_path, budget_bytes=10**8)):
        encoder, tokenizer = MAKERS[kind_of_encoder]()
        tiny = TinyTask.of("classification", tokenizer=tokenizer)
        model, plan = tiny_model(made(name, encoder, num_train_epochs=1), encoder, tiny.task)
        trainer = fit(model, plan, tiny, cache=cache)
        source = open_source(tiny.dev, model, cache, model.freeze_prefix())
        results.append((predict(model, source, trainer.devices).values, trainer.history.epochs))
    (whole, epochs), (cached, cached_epochs) = results
    np.testing.assert_allclose(cached, whole, atol=1e-4)
    assert [e.cached for e in cached_epochs] == [e.frozen_depth >= 1 for e in epochs]


@words
@each
def test_a_killed_run_ends_as_if_it_had_not_been(
    kind_of_encoder: str, name: str, tmp_path: Path
) -> None:
    encoder, tokenizer = MAKERS[kind_of_encoder]()
    tiny = TinyTask.of("classification", tokenizer=tokenizer)
    by_steps = {"solver": "gradient"} if name == "feature-extraction" else {}
    strategy = made(name, encoder, **by_steps)
    copies = [copy.deepcopy(encoder) for _ in range(3)]
    models = []
    for copied in copies:
        torch.manual_seed(3)
        models.append(tiny_model(strategy, copied, tiny.task))
    (model, plan), (again, _), (resumed, _) = models
    whole = fit(model, plan, tiny)
    checkpoint = tmp_path / "checkpoint.pt"
    with pytest.raises(Killed):
        fit(again, plan, tiny, checkpoint=checkpoint, on_epoch=kill_after(2))
    trainer = fit(resumed, plan, tiny, checkpoint=checkpoint)
    assert metrics_of(trainer) == metrics_of(whole)
    for parameter_name, parameter in resumed.named_parameters():
        assert torch.equal(parameter, model.get_parameter(parameter_name)), parameter_name


@words
@pytest.mark.parametrize("kind", ["classification", "pairs", "tagging"])
def test_a_saved_model_answers_as_before(kind_of_encoder: str, kind: str, tmp_path: Path) -> None:
    encoder, tokenizer = MAKERS[kind_of_encoder]()
    tiny = TinyTask.of(kind, tokenizer=tokenizer)
    model, plan = tiny_model(short("fine-tuning"), encoder, tiny.task)
    trainer = fit(model, plan, tiny)
    about = {"max_length": 20, "pairs": kind == "pairs", "precision": "fp32"}
    save_model(tmp_path, model, tokenizer, tiny.task, about)
    rows = tiny_examples(kind, 10, seed=1)
    expected = predict(model, open_source(tiny.dev, model, None, -1), trainer.devices).values
    found = load_model(tmp_path)
    assert found.about["transformers_class"] == ""
    assert found.about["transformers_note"] == f"transformers has no class for {kind_of_encoder}"
    np.testing.assert_allclose(found.outputs(rows), expected, atol=1e-6)
    assert (
        load_encoder(str(tmp_path / "encoder")).encoder.fingerprint() == model.encoder.fingerprint()
    )


@words
@pytest.mark.parametrize("name", sorted(INSERTING))
def test_what_only_transformers_have_is_refused(kind_of_encoder: str, name: str) -> None:
    encoder, _ = MAKERS[kind_of_encoder]()
    with pytest.raises(ConfigError, match=f"type {kind_of_encoder}"):
        tiny_model(short(name), encoder, 3)
