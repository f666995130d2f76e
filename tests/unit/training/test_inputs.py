"""Sources and predictions: rows come back at their places, from pieces or from the cache."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny_runs import TinyTask, short, tiny_model

from totune.features import FeatureCache
from totune.model import Model
from totune.training.devices import Devices
from totune.training.inputs import InputSource, open_source, predict


@pytest.fixture(scope="module")
def tiny() -> TinyTask:
    return TinyTask.of("classification", rows=15)


@pytest.fixture
def model() -> Model:
    built, _ = tiny_model(short("feature-extraction"), "bert", 3)
    built.requires_grad_(False)
    built.freeze_prefix()
    return built


def test_every_row_is_predicted_at_its_place(
    tiny: TinyTask, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = predict(model, InputSource(tiny.train, tiny.train.units), Devices()).values
    assert outputs.shape == (15, 3)
    model.eval()
    with torch.no_grad():
        for row in range(15):
            alone = model(tiny.train.pieces.batch(np.array([row])))[0].numpy()
            np.testing.assert_allclose(outputs[row], alone, atol=1e-5)
    monkeypatch.setattr("totune.training.inputs.EVAL_TOKENS", 12)  # one or two rows a batch
    again = predict(model, InputSource(tiny.train, tiny.train.units), Devices()).values
    np.testing.assert_allclose(again, outputs, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_predicting_has_no_dropout_and_restores_the_mode(
    tiny: TinyTask, model: Model, training: bool
) -> None:
    model.train(training)
    modes = [module.training for module in model.modules()]
    first = predict(model, InputSource(tiny.train, tiny.train.units), Devices()).values
    assert np.array_equal(
        predict(model, InputSource(tiny.train, tiny.train.units), Devices()).values, first
    )
    assert [module.training for module in model.modules()] == modes


def test_a_source_gives_pieces_targets_and_cached_rows(
    tiny: TinyTask, model: Model, tmp_path: Path
) -> None:
    indices, device = np.array([7, 2]), torch.device("cpu")
    assert tiny.train.targets is not None
    batch, viewed = InputSource(tiny.train, tiny.train.units).batch(indices, device)
    assert viewed is None
    assert batch.targets is not None
    assert batch.targets.tolist() == tiny.train.targets[indices].tolist()
    cached = open_source(tiny.train, model, FeatureCache(tmp_path, 10**8), 4)
    batch, viewed = cached.batch(indices, device)
    assert viewed is not None
    assert viewed.rows.shape == (2, 5, model.encoder.width)
    assert batch.indices.tolist() == [7, 2]


def test_no_cache_is_opened_where_it_would_not_pay(
    tiny: TinyTask, model: Model, tmp_path: Path
) -> None:
    cache = FeatureCache(tmp_path, 10**8)
    for frozen in (-1, 0):
        assert open_source(tiny.train, model, cache, frozen).features is None
    assert open_source(tiny.train, model, None, 4).features is None
    assert cache.entries() == []
