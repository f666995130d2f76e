"""A solved phase in the trainer: one epoch, alone or before others."""

from pathlib import Path

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
    split_of,
    tiny_examples,
    tiny_model,
    weights,
)

from totune.errors import DataError
from totune.features import FeatureCache
from totune.model import Model
from totune.strategies.phases import Constant, Epochs, Group, Phase, solved_head
from totune.training.inputs import open_source, predict

TUNE = Phase("all", (Group("*", 1e-4),), Constant(), Epochs(2))


@pytest.fixture(scope="module")
def forty_rows() -> TinyTask:
    return TinyTask.of("classification", rows=40)


def fresh(seed: int = 0) -> Model:
    return tiny_model(short("feature-extraction", layers="top"), "bert", 3, seed)[0]


def test_a_solved_head_is_one_epoch(forty_rows: TinyTask, tmp_path: Path) -> None:
    model, cache = fresh(), FeatureCache(tmp_path, budget_bytes=10**8)
    before = weights(model)
    trainer = fit(model, [solved_head()], forty_rows, cache=cache)
    (epoch,) = trainer.history.epochs
    assert (epoch.phase, epoch.epoch, epoch.frozen_depth, epoch.cached) == ("head", 1, 4, True)
    assert epoch.ended.startswith("solved, with a penalty of C=")
    assert trainer.history.best == 0
    assert trainer.history.examples == 40
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {"head.out.weight", "head.out.bias"}


def test_its_metrics_are_those_of_the_model(forty_rows: TinyTask) -> None:
    model = fresh()
    ((train, dev),) = metrics_of(trainer := fit(model, [solved_head()], forty_rows))
    for split, metrics in ((forty_rows.train, train), (forty_rows.dev, dev)):
        outputs = predict(model, open_source(split, model, None, -1), trainer.devices)
        accuracy = float((outputs.values.argmax(axis=1) == split.flat).mean())
        assert metrics["accuracy"] == pytest.approx(accuracy)
        assert metrics["loss"] == pytest.approx(float(outputs.losses.mean()), abs=1e-5)


@pytest.mark.parametrize("kind", ["classification", "regression", "pairs"])
def test_neither_the_first_weights_nor_the_cache_change_it(kind: str, tmp_path: Path) -> None:
    tiny = TinyTask.of(kind, rows=40)
    strategy, cache = short("feature-extraction", layers="top"), FeatureCache(tmp_path)
    found = []
    for given in (None, cache):
        model, plan = tiny_model(strategy, "bert", tiny.task)
        with torch.no_grad():
            model.head.out.weight.fill_(0.0 if given is None else 3.0)
        fit(model, plan, tiny, cache=given)
        found.append(model.head.out.weight.detach())
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)


def test_tuning_starts_from_the_solved_head(forty_rows: TinyTask) -> None:
    alone, model, seen = fresh(), fresh(), []
    fit(alone, [solved_head()], forty_rows)
    trainer = fit(
        model, [solved_head(), TUNE], forty_rows, on_epoch=lambda _: seen.append(weights(model))
    )
    assert [epoch.phase for epoch in trainer.history.epochs] == ["head", "all", "all"]
    assert all(torch.equal(p, seen[0][n]) for n, p in alone.named_parameters())
    assert not torch.equal(seen[1]["head.out.weight"], seen[0]["head.out.weight"])


def test_killed_after_the_solved_phase_it_continues(forty_rows: TinyTask, tmp_path: Path) -> None:
    plan, whole, resumed = [solved_head(), TUNE], fresh(), fresh()
    expected = fit(whole, plan, forty_rows)
    for epoch in (1, 2):
        path = tmp_path / f"{epoch}.pt"
        with pytest.raises(Killed):
            fit(fresh(), plan, forty_rows, checkpoint=path, on_epoch=kill_after(epoch))
        resumed = fresh()
        trainer = fit(resumed, plan, forty_rows, checkpoint=path)
        assert metrics_of(trainer) == metrics_of(expected)
        assert [e.ended for e in trainer.history.epochs] == [
            e.ended for e in expected.history.epochs
        ]
        assert all(torch.equal(p, whole.get_parameter(n)) for n, p in resumed.named_parameters())


def test_rows_of_one_class_are_a_clear_fault(forty_rows: TinyTask) -> None:
    rows = tiny_examples(rows=40)
    same = rows.take(np.flatnonzero(np.array(rows.labels) == "a"))
    only = TinyTask(forty_rows.task, split_of("train", same, forty_rows.task), forty_rows.dev)
    with pytest.raises(DataError, match="at least two labels"):
        fit(fresh(), [solved_head()], only)
