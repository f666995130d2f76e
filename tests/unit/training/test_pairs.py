"""A phase that learns from pairs of rows: what it trains, and the head it leaves."""

import numpy as np
import pytest
import torch
from tests.tiny_runs import TinyTask, fit, short, tiny_model
from torch.nn import functional

from totune.errors import ConfigError
from totune.heads.base import HEADS
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.strategies.phases import Solved
from totune.tasks.base import TASKS, Task
from totune.tasks.classification import Classification
from totune.training.devices import Devices
from totune.training.inputs import Split, linear_inputs, open_source
from totune.training.solving import nearest_class_mean


def closeness(model: Model, split: Split) -> float:
    """Mean cosine of rows of one class, less that of rows of two classes."""
    source = open_source(split, model, None, -1)
    units = functional.normalize(torch.from_numpy(linear_inputs(model, source, Devices())))
    cosines, targets = (units @ units.T).numpy(), split.flat
    same = targets[:, None] == targets[None, :]
    alone = ~np.eye(len(targets), dtype=bool)
    return float(cosines[same & alone].mean() - cosines[~same].mean())


def test_rows_of_a_class_come_together(tiny: TinyTask) -> None:
    strategy = short("contrastive", num_train_epochs=20, learning_rate=3e-3)
    model, plan = tiny_model(strategy, "bert", 3)
    before = closeness(model, tiny.train)
    trainer = fit(model, plan, tiny)
    assert closeness(model, tiny.train) > before + 0.1
    *pairs, head = trainer.history.epochs
    assert [epoch.phase for epoch in pairs] == ["pairs"] * 20
    assert pairs[-1].train["loss"] < pairs[0].train["loss"]
    assert pairs[-1].train["accuracy"] > pairs[0].train["accuracy"]
    assert (head.phase, head.frozen_depth) == ("head", 4)


def test_it_ends_with_the_solved_head(tiny: TinyTask) -> None:
    """Whatever class means scored on a small dev split in an epoch before."""
    model, plan = tiny_model(short("contrastive", num_train_epochs=2), "bert", 3)
    trainer = fit(model, plan, tiny)
    assert isinstance(plan[-1].stop, Solved)
    assert trainer.history.best == len(trainer.history.epochs) - 1


def test_the_nearest_class_mean_as_a_linear_layer(tiny: TinyTask) -> None:
    task = Classification((*tiny.task.labels, "unseen"))
    model, _ = tiny_model(short("contrastive"), "bert", task)
    vectors = np.random.default_rng(0).normal(size=(len(tiny.train), model.mixing.width))
    outputs = nearest_class_mean(model, vectors, tiny.train)
    means = np.stack([vectors[tiny.train.flat == label].mean(axis=0) for label in range(3)])
    distances = ((vectors[:, None] - means[None]) ** 2).sum(axis=2)
    assert np.array_equal(outputs.argmax(axis=1), distances.argmin(axis=1))
    found = model.head.linear_layer()(torch.from_numpy(vectors).float()).detach()
    np.testing.assert_allclose(found, outputs, atol=1e-4)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (TASKS.create("regression", {"low": 0.0, "high": 1.0}), "regression has no classes"),
        (TASKS.create("tagging", {"labels": ["O", "B-A"], "scheme": "iob2"}), "tagging has no"),
    ],
)
def test_tasks_without_classes_of_texts_are_refused(task: Task, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"contrastive.*{reason}"):
        tiny_model(short("contrastive"), "bert", task)


def test_a_head_that_reads_two_texts_apart_is_refused() -> None:
    strategy = STRATEGIES.create("contrastive")
    model, _ = tiny_model(strategy, "bert", 3)
    head = HEADS.create("siamese")
    readout = strategy.readout(model.encoder, "pooled-pair")
    siamese = Model(model.encoder, readout, head, model.task)
    with pytest.raises(ConfigError, match="head 'siamese' reads two"):
        strategy.plan(siamese)
